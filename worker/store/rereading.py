"""What is read once more below a cursor, since changes of it went unheard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import GENERAL
from worker.store.cursors import require_hold

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.cursors import Source
    from worker.store.database import Database

# A group that became a forum unheard of has no cursor for General: the one of the group stands for it.
_READ_AGAIN = text(f"""
    UPDATE scan_cursors SET reread_at = 0, reread_to = last_message_id
    WHERE channel_id = :channel AND account_id IS NOT DISTINCT FROM :owner
      AND ((topic_id > 0) = :is_forum OR topic_id = 0 AND NOT EXISTS (
        SELECT FROM scan_cursors g WHERE g.channel_id = :channel
          AND g.account_id IS NOT DISTINCT FROM :owner AND g.topic_id = {GENERAL}))
""")
_NOTE_READ_AGAIN = text("UPDATE scan_cursors SET reread_at = :at WHERE id = :cursor")


async def read_again(connection: AsyncConnection, source: Source, *, is_forum: bool) -> Source:
    """What was read up to here has to be read once more, after everything that is new."""
    owner = None if source.sees_all else source.account_id
    values = {"channel": source.channel_id, "owner": owner, "is_forum": is_forum}
    await connection.execute(_READ_AGAIN, values)
    return source if is_forum else replace(source, reread_at=0, reread_to=source.last_message_id)


async def note_read_again(connection: AsyncConnection, source: Source, up_to: int) -> None:
    """So far it was, inside the transaction that keeps what was found."""
    await connection.execute(_NOTE_READ_AGAIN, {"cursor": source.cursor_id, "at": up_to})


async def all_read_again(database: Database, source: Source) -> None:
    """Nothing of it is left."""
    async with database.transaction("cursors.read_again") as connection:
        await require_hold(connection, source)
        await note_read_again(connection, source, source.reread_to)
