"""How far a destination has been gone through for messages that no row knows.

``look_from`` is set while the look before the first publish is under way: whatever it adopts makes older rows
look as if everything below were known. ``looked_to`` is how far a look has settled everything, or a person
has vouched for it: an account that sees nothing before may publish. Rows of an older backup say less, never
too much. ``recovered_to`` is what ``worker recover`` has settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database

# SQL: above which message of channel ``c`` a look begins. Relies on package_parts_message_key.
LOOK_BEGINS = """coalesce(c.look_from, (
    SELECT max(message_id) FROM package_parts WHERE dest_channel_id = c.id), 0)"""
# SQL: the message of channel ``c`` up to which nothing of ours is unknown. The very first only says that the
# channel was made.
KNOWN_TO = f"greatest({LOOK_BEGINS}, c.looked_to, 1)"
_HIDDEN_TO = "(SELECT coalesce(max(visible_from), 1) - 1 FROM memberships WHERE channel_id = c.id)"
_BEGIN = text(f"""
    UPDATE channels c SET look_from = {LOOK_BEGINS} WHERE id = :channel RETURNING look_from, {_HIDDEN_TO}
""")


@dataclass(frozen=True, slots=True)
class Begun:
    """A look has begun above message ``above``; up to ``hidden_to`` no account sees whatever comes later."""

    above: int
    hidden_to: int


async def begin_look(database: Database, channel_id: int) -> Begun:
    """Begin where an earlier look was broken off, else above all that is known."""
    async with database.transaction("destinations.look_begun") as connection:
        return Begun(*(await connection.execute(_BEGIN, {"channel": channel_id})).one())


async def note_looked(database: Database, channel_id: int, message_id: int, *, is_through: bool) -> None:
    """A look has settled everything up to this message; ``is_through``: and has left nothing for later."""
    async with database.transaction("destinations.looked") as connection:
        await connection.execute(
            text("""
                UPDATE channels SET looked_to = greatest(looked_to, :message),
                    look_from = CASE WHEN :through THEN NULL ELSE :message END
                WHERE id = :channel
            """),
            {"channel": channel_id, "message": message_id, "through": is_through},
        )


async def vouch_for_hidden(database: Database, telegram_id: int) -> None:
    """A person says that nothing of this fleet lies where an account of it does not see."""
    async with database.transaction("channels.vouched") as connection:
        await connection.execute(
            text(f"""
                UPDATE channels c SET looked_to = greatest(looked_to, {_HIDDEN_TO})
                WHERE telegram_id = :channel
            """),
            {"channel": telegram_id},
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
