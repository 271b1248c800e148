"""What each account is doing: written by the worker that runs it, read by whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far one step of one set has come."""

    set_name: str
    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class SetUnderWay:
    """A claimed set; ``step`` is empty until its first bytes have moved.

    ``moved`` bytes went through this step in ``seconds``; ``idle`` is the time since the last of them.
    """

    set_id: int
    account: int
    name: str
    channel: str
    step: str
    done: int
    total: int
    moved: int
    seconds: float
    idle: float


# Progress is looked up by name, and an index has no room for any name that people post.
_LONGEST_NAME = 200
# A new step, and a set that went back to an earlier byte, start the measurement of speed anew.
_WRITE = text("""
    WITH ended AS (
        DELETE FROM account_progress WHERE account_id = :account AND set_name <> ALL (CAST(:names AS text[]))
    )
    INSERT INTO account_progress AS p (account_id, set_name, step, done_bytes, total_bytes, started_bytes)
    SELECT :account, l.name, l.step, l.done, l.total, l.done
    FROM unnest(CAST(:names AS text[]), CAST(:steps AS text[]), CAST(:done AS bigint[]),
                CAST(:totals AS bigint[])) AS l (name, step, done, total)
    ON CONFLICT (account_id, set_name) DO UPDATE SET
        started_at = CASE WHEN p.step = excluded.step AND p.done_bytes <= excluded.done_bytes
                          THEN p.started_at ELSE excluded.started_at END,
        started_bytes = CASE WHEN p.step = excluded.step AND p.done_bytes <= excluded.done_bytes
                             THEN p.started_bytes ELSE excluded.started_bytes END,
        updated_at = CASE WHEN p.step = excluded.step AND p.done_bytes = excluded.done_bytes
                          THEN p.updated_at ELSE excluded.updated_at END,
        step = excluded.step, done_bytes = excluded.done_bytes, total_bytes = excluded.total_bytes
""")
# The claim says that a set is under way: a row that a dead worker left shows nothing. Relies on
# archive_sets_claims.
_UNDER_WAY = text(f"""
    SELECT s.id, s.claimed_by, s.name, c.title, coalesce(p.step, ''), coalesce(p.done_bytes, 0),
           coalesce(p.total_bytes, s.total_size), coalesce(p.done_bytes - p.started_bytes, 0),
           CAST(extract(epoch FROM fleet_now() - coalesce(p.started_at, s.claimed_at)) AS double precision),
           CAST(extract(epoch FROM fleet_now() - coalesce(p.updated_at, s.claimed_at)) AS double precision)
    FROM archive_sets s JOIN channels c ON c.id = s.channel_id
    LEFT JOIN account_progress p
        ON p.account_id = s.claimed_by AND p.set_name = left(s.name, {_LONGEST_NAME})
        AND p.updated_at >= s.claimed_at
    WHERE s.state = 'claimed' ORDER BY s.claimed_by, s.claimed_at LIMIT :limit
""")


async def write_progress(database: Database, account_id: int, steps: Sequence[StepProgress]) -> None:
    """Replace what this account was doing by what it does now."""
    by_name = {each.set_name[:_LONGEST_NAME]: each for each in steps}
    async with database.transaction("progress.write") as connection:
        await connection.execute(
            _WRITE,
            {
                "account": account_id,
                "names": list(by_name),
                "steps": [each.step for each in by_name.values()],
                "done": [each.done for each in by_name.values()],
                "totals": [each.total for each in by_name.values()],
            },
        )


async def sets_under_way(database: Database, limit: int = 1000) -> list[SetUnderWay]:
    """Every claimed set and how far it has come."""
    async with database.reading() as connection:
        return [SetUnderWay(*row) for row in await connection.execute(_UNDER_WAY, {"limit": limit})]
