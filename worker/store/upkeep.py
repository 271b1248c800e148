"""Whose turn it is to clean up: a row in ``settings`` that only one process can move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database

# Whoever comes second waits for the row, sees the time that the first one wrote, and changes nothing.
_TAKE = text("""
    INSERT INTO settings AS s (key, value, updated_at) VALUES ('cleaned_up', 'true', fleet_now())
    ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at
    WHERE s.updated_at <= excluded.updated_at - :every * interval '1 second'
    RETURNING key
""")


async def take_turn(database: Database, *, every_seconds: float) -> bool:
    """Whether it is this caller's turn; nobody else's then, for that long."""
    async with database.transaction("upkeep.turn") as connection:
        taken = await connection.execute(_TAKE, {"every": every_seconds})
        return taken.one_or_none() is not None
