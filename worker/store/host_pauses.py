"""Hosts that Telegram takes no further connections from for a while, for all of their processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database

_FIRST_SECONDS, _LONGEST_SECONDS = 5, 300
# So long without a refusal, and the next pause is a short one again.
_FORGOTTEN_SECONDS = 600
_MOST_FAILURES = 10

_KNOW = text("""
    INSERT INTO host_pauses (host, until) VALUES (:host, '-infinity') ON CONFLICT (host) DO NOTHING
""")
# One that seems to last longer than any was made for was written before the clock stepped back, and is over.
_LASTS = f"""h.until > fleet_now() AND h.until <= fleet_now() + interval '{_LONGEST_SECONDS} seconds'"""
# What several processes are told while a pause lasts is one refusal.
_REFUSED = text(f"""
    UPDATE host_pauses h SET failures = each.failures, until = fleet_now() + interval '1 second'
        * least({_LONGEST_SECONDS}, {_FIRST_SECONDS} * power(2, each.failures - 1))
    FROM (SELECT CASE WHEN until > fleet_now() - interval '{_FORGOTTEN_SECONDS} seconds'
                 THEN least(failures + 1, {_MOST_FAILURES}) ELSE 1 END AS failures
          FROM host_pauses WHERE host = :host FOR UPDATE) each
    WHERE h.host = :host AND NOT ({_LASTS})
""")
_LEFT = text(f"""
    SELECT CASE WHEN {_LASTS} THEN extract(epoch FROM until - fleet_now()) ELSE 0 END::float8
    FROM host_pauses h WHERE host = :host
""")


async def note_refusal(database: Database, host: str) -> float:
    """Telegram refused one of this host's connections; for how long none of its processes opens another."""
    async with database.transaction("host_pauses.refused") as connection:
        values = {"host": host}
        await connection.execute(_KNOW, values)
        await connection.execute(_REFUSED, values)
        return float((await connection.execute(_LEFT, values)).scalar_one())


async def pause_left(database: Database, host: str) -> float:
    """How long this host opens no further connection, whichever of its processes was refused."""
    async with database.reading() as connection:
        return float((await connection.execute(_LEFT, {"host": host})).scalar_one_or_none() or 0.0)
