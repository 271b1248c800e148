"""File messages seen in sources. Every one is kept, whatever its name; archives' names go on to form sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from worker.domain.archive_name import recognise
from worker.store.collecting import form_sets, lock_channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import Message
    from worker.store.database import Database

NO_FAMILY = ""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeping a page came to."""

    files: int = 0
    sets: int = 0


_INSERT_FILE = text("""
    INSERT INTO source_files (channel_id, topic_id, message_id, document_id, file_name, size, mime_type,
        caption, poster_id, album_id, reply_to, is_protected, posted_at, family)
    VALUES (:channel, :topic, :message, :document, :name, :size, :mime,
        :caption, :poster, :album, :reply, :protected, :posted, :family)
    ON CONFLICT (channel_id, message_id) DO NOTHING RETURNING id
""")
# Rows that were written before names were read into families. Relies on source_files_unsorted.
_UNSORTED = text("""
    SELECT id, file_name FROM source_files WHERE channel_id = :channel AND family IS NULL AND set_id IS NULL
    ORDER BY id LIMIT :batch FOR UPDATE
""")
_HAS_UNSORTED = text("""
    SELECT EXISTS (SELECT FROM source_files WHERE channel_id = :channel AND family IS NULL AND set_id IS NULL)
""")
_SORT = text("""
    UPDATE source_files f SET family = p.family
    FROM unnest(CAST(:files AS bigint[]), CAST(:families AS text[])) AS p (file, family) WHERE f.id = p.file
""")


def family_of(file_name: str) -> str:
    """The key that files share which may belong to one archive; empty for what is no archive's name."""
    name = recognise(file_name)
    # No file name holds a line break, so it cannot be mistaken for the one between name and kind.
    return NO_FAMILY if name is None else "\n".join(part.replace("\n", " ") for part in name.family)


async def keep_files(connection: AsyncConnection, channel_id: int, messages: Sequence[Message]) -> Kept:
    """Write a row for every file message, inside the scan's transaction, and form sets of what is there.

    What is known already stays as it is.
    """
    families: set[str] = set()
    files = 0
    with_files = [message for message in messages if message.document is not None]
    if with_files:
        await lock_channel(connection, channel_id)
    for message in with_files:
        values = _values(channel_id, message)
        if (await connection.execute(_INSERT_FILE, values)).one_or_none() is not None:
            families.add(values["family"])
            files += 1
    families.discard(NO_FAMILY)
    return Kept(files, await form_sets(connection, channel_id, families) if families else 0)


def _values(channel_id: int, message: Message) -> dict[str, Any]:
    document = message.document
    assert document is not None, "only file messages are kept"
    return {
        "channel": channel_id,
        "topic": message.topic_id,
        "message": message.message_id,
        "document": document.document_id,
        "name": document.file_name,
        "size": document.size,
        "mime": document.mime_type,
        "caption": message.text,
        "poster": message.poster_id,
        "album": message.album_id,
        "reply": message.reply_to,
        "protected": message.is_protected,
        "posted": message.date,
        "family": family_of(document.file_name),
    }


async def sort_earlier(database: Database, channel_id: int) -> int:
    """Form sets of files that an earlier version only wrote down; how many such files there were."""
    found = 0
    while await _has_unsorted(database, channel_id):
        async with database.transaction("files.sort") as connection:
            await lock_channel(connection, channel_id)
            rows = (await connection.execute(_UNSORTED, {"channel": channel_id, "batch": _BATCH})).all()
            families = [family_of(row.file_name) for row in rows]
            await connection.execute(_SORT, {"files": [row.id for row in rows], "families": families})
            await form_sets(connection, channel_id, set(families) - {NO_FAMILY})
        found += len(rows)
    return found


async def _has_unsorted(database: Database, channel_id: int) -> bool:
    async with database.reading() as connection:
        values = {"channel": channel_id}
        return bool((await connection.execute(_HAS_UNSORTED, values)).scalar_one())
