"""What calls cost lately, and what stands against further ones: for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class MethodCalls:
    """How often a method was called within the window, by all accounts."""

    method: str
    calls: int


@dataclass(frozen=True, slots=True)
class EscalationRow:
    """One method of one account was refused so often that it rests longer than it was told to."""

    account: int
    method: str
    floods: int
    extra_seconds: int
    age: float


@dataclass(frozen=True, slots=True)
class WidenedPace:
    """Calls of this kind are spaced ``factor`` times as far apart as they could be."""

    account: int
    method: str
    factor: float


# The counts per minute hold the parts of transfers under way, too, which the log of calls gets at their end.
# Relies on rate_limits_window.
_CALLS = text("""
    SELECT method, CAST(sum(call_count) AS bigint) AS calls FROM rate_limits
    WHERE window_start > fleet_now() - :minutes * interval '1 minute'
    GROUP BY method ORDER BY calls DESC, method
""")
# Relies on api_activity_at.
_FAILED = text("""
    SELECT coalesce(CAST(sum(calls) AS bigint), 0) FROM api_activity
    WHERE at > fleet_now() - :minutes * interval '1 minute' AND NOT success
""")
# Relies on escalations_at.
_ESCALATIONS = text("""
    SELECT account_id, method, floods, extra_seconds,
           CAST(extract(epoch FROM fleet_now() - at) AS double precision)
    FROM escalations WHERE at > fleet_now() - :hours * interval '1 hour' ORDER BY at DESC LIMIT :limit
""")
_WIDENED = text("""
    SELECT account_id, method, factor FROM call_paces, LATERAL (
        SELECT 1 + (widened - 1)
            * power(0.5, greatest(extract(epoch FROM fleet_now() - widened_at), 0) / :half_life)
    ) AS faded (factor)
    WHERE chat = 0 AND widened > 1 AND factor >= :noticeable ORDER BY factor DESC, account_id, method
""")


async def calls_by_method(database: Database, minutes: int) -> list[MethodCalls]:
    """Calls of the present minute and those before it, ``minutes`` in all; the most frequent first."""
    async with database.reading() as connection:
        return [MethodCalls(*row) for row in await connection.execute(_CALLS, {"minutes": minutes})]


async def failed_calls(database: Database, minutes: int) -> int:
    """How many calls failed or were refused."""
    async with database.reading() as connection:
        failed: int = (await connection.execute(_FAILED, {"minutes": minutes})).scalar_one()
        return failed


async def recent_escalations(database: Database, hours: int = 24, limit: int = 20) -> list[EscalationRow]:
    """The latest escalations, newest first."""
    async with database.reading() as connection:
        rows = await connection.execute(_ESCALATIONS, {"hours": hours, "limit": limit})
        return [EscalationRow(*row) for row in rows]


async def widened_paces(database: Database, half_life: float, noticeable: float = 1.1) -> list[WidenedPace]:
    """What the refusals taught, as far as it has not faded."""
    async with database.reading() as connection:
        rows = await connection.execute(_WIDENED, {"half_life": half_life, "noticeable": noticeable})
        return [WidenedPace(*row) for row in rows]
