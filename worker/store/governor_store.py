"""The governor's memory: blocks, paces and the record of calls, shared by all processes.

Every operation is one statement in a transaction of its own. The two that decide are functions of the
database (``governor_admit``, ``governor_flooded``): they lock one row of ``call_paces``, read the time
after that, and do all or nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from worker import faults
from worker.domain.calls import Admission, Block, Cleaned, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.calls import Activity, Adaptation, Buckets, Call, FloodReport, PartCount
    from worker.store.database import Database

_ADMIT = text("""
    SELECT wait, reason FROM governor_admit(:account, :method, :chat, :bucket, :interval, :burst,
        CAST(:chat_interval AS double precision), CAST(:chat_burst AS integer), :slow_from, :half_life)
""")
_FLOODED = text("""
    SELECT rest, escalated FROM governor_flooded(:account, :method, :chat, :kind, :seconds, :hold, :bucket,
        :duration_ms, :context, :count, :within, :extra, :widen, :widest, :half_life)
""")
# Windows are taken in one order by everybody, so that two processes never wait for each other.
_ACTIVITY = text("""
    WITH lines AS (
        INSERT INTO api_activity (account_id, method, success, error_code, flood_wait_seconds,
                                  request_duration_ms, context, calls)
        SELECT l.account, l.method, l.success, nullif(l.error, ''), nullif(l.flood, 0), l.duration,
               nullif(l.context, ''), l.calls
        FROM unnest(CAST(:accounts AS integer[]), CAST(:methods AS text[]), CAST(:oks AS boolean[]),
                    CAST(:errors AS text[]), CAST(:floods AS integer[]), CAST(:durations AS integer[]),
                    CAST(:contexts AS text[]), CAST(:calls AS integer[]))
             AS l (account, method, success, error, flood, duration, context, calls)
        JOIN accounts a ON a.id = l.account
    )
    INSERT INTO rate_limits AS r (account_id, method, window_start, call_count, last_call_at)
    SELECT c.account, c.method, date_bin('1 minute', fleet_now(), 'epoch'), c.calls, fleet_now()
    FROM unnest(CAST(:count_accounts AS integer[]), CAST(:count_methods AS text[]), CAST(:counts AS bigint[]))
         AS c (account, method, calls)
    JOIN accounts a ON a.id = c.account
    ORDER BY c.account, c.method
    ON CONFLICT (account_id, method, window_start)
    DO UPDATE SET call_count = r.call_count + excluded.call_count, last_call_at = excluded.last_call_at
""")
# Relies on flood_wait_state_blocked.
_BLOCKS = text("""
    SELECT account_id, method, chat,
           CAST(extract(epoch FROM blocked_until - fleet_now()) AS double precision), wait_seconds
    FROM flood_wait_state WHERE blocked_until > fleet_now() ORDER BY blocked_until
""")
_OLD_WINDOWS = text("DELETE FROM rate_limits WHERE window_start < fleet_now() - interval '1 hour'")
# In portions (api_activity_at finds them), so that no transaction lasts long however much there is.
_OLD_ACTIVITY = text("""
    DELETE FROM api_activity WHERE id IN (
        SELECT id FROM api_activity WHERE at < fleet_now() - :days * interval '1 day' ORDER BY at LIMIT 10000)
""")
_OLD_ESCALATIONS = text("DELETE FROM escalations WHERE at < fleet_now() - :days * interval '1 day'")
# A block that another process renews while this statement waits for its row is looked at again, and stays.
_OVER = text("DELETE FROM flood_wait_state WHERE blocked_until <= fleet_now()")
# A pace that was not used for a day has faded to what a fresh one would be.
_IDLE_PACES = text("""
    DELETE FROM call_paces
    WHERE greatest(tat, last_at, widened_at) < fleet_now() - interval '1 day'
""")


class GovernorStore:
    """Provides what ``worker.flow.governor_state`` asks for."""

    def __init__(self, database: Database, *, retention_days: int) -> None:
        self._database = database
        self._retention_days = retention_days

    async def admit(self, call: Call, buckets: Buckets, adaptation: Adaptation) -> Admission:
        """Charge the call to its paces if no block and no pace stands against it; all of it or nothing."""
        chat_pace = buckets.chat_pace
        async with self._statement("governor.admit") as connection:
            row = (
                await connection.execute(
                    _ADMIT,
                    {
                        "account": call.account,
                        "method": call.method,
                        "chat": call.chat,
                        "bucket": buckets.name,
                        "interval": buckets.pace.interval,
                        "burst": buckets.pace.burst,
                        "chat_interval": None if chat_pace is None else chat_pace.interval,
                        "chat_burst": None if chat_pace is None else chat_pace.burst,
                        "slow_from": adaptation.slow_from,
                        "half_life": adaptation.half_life,
                    },
                )
            ).one()
        return Admission(row.wait, row.reason)

    async def record_flood(self, report: FloodReport) -> Verdict:
        """Block, escalate, widen and log in one step, and tell all processes. A block never gets shorter."""
        try:
            return await self._flooded(report)
        except IntegrityError:
            # The account has been removed meanwhile. Every other account's calls wait for this to be settled.
            return Verdict(report.hold)

    async def _flooded(self, report: FloodReport) -> Verdict:
        call, rule, adaptation = report.call, report.escalation, report.adaptation
        async with self._statement("governor.flooded") as connection:
            row = (
                await connection.execute(
                    _FLOODED,
                    {
                        "account": call.account,
                        "method": call.method,
                        "chat": call.chat,
                        "kind": report.flood.kind.value,
                        "seconds": report.flood.seconds,
                        "hold": report.hold,
                        "bucket": report.bucket,
                        "duration_ms": round(report.duration * 1000),
                        "context": call.context,
                        "count": rule.count,
                        "within": rule.within,
                        "extra": rule.extra,
                        "widen": adaptation.widen,
                        "widest": adaptation.widest,
                        "half_life": adaptation.half_life,
                    },
                )
            ).one()
        return Verdict(row.rest, row.escalated)

    async def record_activity(self, rows: Sequence[Activity], counts: Sequence[PartCount]) -> None:
        """Write lines of the record and add counts to the present window."""
        async with self._statement("governor.activity") as connection:
            await connection.execute(
                _ACTIVITY,
                {
                    "accounts": [row.account for row in rows],
                    "methods": [row.method for row in rows],
                    "oks": [row.ok for row in rows],
                    "errors": [row.error for row in rows],
                    "floods": [row.flood_seconds for row in rows],
                    "durations": [round(row.duration * 1000) for row in rows],
                    "contexts": [row.context for row in rows],
                    "calls": [row.calls for row in rows],
                    "count_accounts": [count.account for count in counts],
                    "count_methods": [count.method for count in counts],
                    "counts": [count.calls for count in counts],
                },
            )

    async def active_blocks(self) -> Sequence[Block]:
        """The blocks in force."""
        return await active_blocks(self._database)

    async def cleanup(self) -> Cleaned:
        """Remove what is too old to matter, and no block that is in force."""
        days = {"days": self._retention_days}
        async with self._statement("governor.cleanup") as connection:
            windows = (await connection.execute(_OLD_WINDOWS)).rowcount
            blocks = (await connection.execute(_OVER)).rowcount
            await connection.execute(_IDLE_PACES)
            await connection.execute(_OLD_ESCALATIONS, days)
            activity = 0
            while removed := (await connection.execute(_OLD_ACTIVITY, days)).rowcount:
                activity += removed
        return Cleaned(windows, activity, blocks)

    @contextlib.asynccontextmanager
    async def _statement(self, name: str) -> AsyncIterator[AsyncConnection]:
        """A connection on which each statement is a transaction: no round trips for BEGIN and COMMIT."""
        async with self._database.reading() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            with faults.around(f"db.{name}"):
                yield connection


async def active_blocks(database: Database) -> Sequence[Block]:
    """The blocks in force, those that end first first."""
    async with database.reading() as connection:
        return [Block(*row) for row in await connection.execute(_BLOCKS)]
