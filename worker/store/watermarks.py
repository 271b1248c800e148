"""How far a destination has been gone through for messages that no row knows.

``look_from`` is set while the look before the first publish is under way: whatever it adopts makes older rows
look as if everything below were known. ``recovered_to`` is what ``worker recover`` has settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database

# Relies on package_parts_message_key.
_BEGIN = text("""
    UPDATE channels SET look_from = coalesce(look_from, (
        SELECT max(message_id) FROM package_parts WHERE dest_channel_id = channels.id), 0)
    WHERE id = :channel RETURNING look_from
""")


async def begin_look(database: Database, channel_id: int) -> int:
    """Above which message to look: where an earlier look was broken off, else above all that is known."""
    async with database.transaction("destinations.look_begun") as connection:
        return int((await connection.execute(_BEGIN, {"channel": channel_id})).scalar_one())


async def note_looked(database: Database, channel_id: int, message_id: int | None) -> None:
    """Everything up to this message is settled; None: the look has come to the end."""
    async with database.transaction("destinations.looked") as connection:
        await connection.execute(
            text("UPDATE channels SET look_from = :message WHERE id = :channel"),
            {"channel": channel_id, "message": message_id},
        )


async def recovered_to(database: Database, channel_id: int) -> int:
    """The message up to which recovery has settled everything."""
    async with database.reading() as connection:
        query = text("SELECT recovered_to FROM channels WHERE id = :channel")
        return int((await connection.execute(query, {"channel": channel_id})).scalar_one())


async def note_recovered(database: Database, channel_id: int, message_id: int) -> None:
    """Recovery has settled everything up to this message."""
    async with database.transaction("destinations.recovered") as connection:
        await connection.execute(
            text("UPDATE channels SET recovered_to = :message WHERE id = :channel"),
            {"channel": channel_id, "message": message_id},
        )
