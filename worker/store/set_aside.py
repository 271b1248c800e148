"""Messages of sources that could not be written down, each with the reason; everything around them was.

They are tried again whenever their page is read again, and leave this list when they can be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from worker.errors import FleetError
from worker.log import get_logger
from worker.store.database import is_disconnect
from worker.store.photos import keep_photos
from worker.store.source_files import Kept, keep_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import Message
    from worker.store.database import Database
    from worker.store.photos import Origin

log = get_logger(__name__)
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class SetAside:
    """How many messages of a channel were set aside, and why the latest of them was."""

    channel: str
    messages: int
    reason: str


_SET_ASIDE = text("""
    INSERT INTO messages_set_aside AS m (channel_id, message_id, reason) VALUES (:channel, :message, :reason)
    ON CONFLICT (channel_id, message_id) DO UPDATE SET reason = excluded.reason, at = fleet_now()
    WHERE m.reason <> excluded.reason RETURNING message_id
""")
_TAKE_BACK = text("""
    DELETE FROM messages_set_aside
    WHERE channel_id = :channel AND message_id = ANY(CAST(:messages AS integer[]))
""")
_BY_CHANNEL = text("""
    SELECT c.title, count(*), (array_agg(m.reason ORDER BY m.at DESC))[1]
    FROM messages_set_aside m JOIN channels c ON c.id = m.channel_id GROUP BY c.id ORDER BY c.id
""")


async def keep_page(connection: AsyncConnection, source: Origin, messages: Sequence[Message]) -> Kept:
    """Write down what these messages carry, inside the scan's transaction.

    Where that fails, each is written down by itself, and those that cannot be are set aside: one message must
    not keep all that follow it from being read.
    """
    try:
        async with connection.begin_nested():
            kept = await _keep(connection, source, messages)
            await _take_back(connection, source, messages)
            return kept
    except Exception as error:
        if _is_our_trouble(error):
            raise
        log.warning("scan.page_in_pieces", channel=source.title, reason=_reason(error))
    files, sets, held_up = 0, 0, False
    aside: list[int] = []
    for message in messages:
        try:
            async with connection.begin_nested():
                kept = await _keep(connection, source, [message])
                await _take_back(connection, source, [message])
        except Exception as error:
            if _is_our_trouble(error):
                raise
            await _set_aside(connection, source, message, _reason(error))
            aside.append(message.message_id)
            continue
        files, sets, held_up = files + kept.files, sets + kept.sets, held_up or kept.held_up
    return Kept(files, sets, held_up=held_up, set_aside=tuple(aside))


async def _keep(connection: AsyncConnection, source: Origin, messages: Sequence[Message]) -> Kept:
    kept = await keep_files(connection, source.channel_id, messages)
    await keep_photos(connection, source, messages)
    return kept


async def _take_back(connection: AsyncConnection, source: Origin, messages: Sequence[Message]) -> None:
    values = {"channel": source.channel_id, "messages": [message.message_id for message in messages]}
    await connection.execute(_TAKE_BACK, values)


async def _set_aside(connection: AsyncConnection, source: Origin, message: Message, reason: str) -> None:
    values = {"channel": source.channel_id, "message": message.message_id, "reason": reason}
    if (await connection.execute(_SET_ASIDE, values)).one_or_none() is not None:
        log.warning("message.set_aside", channel=source.title, message=message.message_id, reason=reason)


def _is_our_trouble(error: Exception) -> bool:
    """Whether the database is away or the work has another owner: no message is to blame for that."""
    return isinstance(error, FleetError | OSError | MemoryError) or is_disconnect(error)


def _reason(error: Exception) -> str:
    origin = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    words = (str(origin) or repr(origin)).splitlines()[0]
    # It may quote the very text that could not be kept.
    return words.encode(errors="replace").decode().replace("\0", "\ufffd")[:_LONGEST_REASON]


async def set_aside_by_channel(database: Database) -> list[SetAside]:
    """How many messages were set aside in each channel. The table is empty but for hostile ones."""
    async with database.reading() as connection:
        return [SetAside(*row) for row in await connection.execute(_BY_CHANNEL)]
