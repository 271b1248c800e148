"""File messages seen in sources. Every one is kept, whatever its name; archives' names go on to form sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from worker.domain.forming import NO_FAMILY, family_of
from worker.store.collecting import form_sets, lock_channel
from worker.store.cursors import require_hold
from worker.store.file_changes import release_files
from worker.store.protection import apply_protection

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import Message
    from worker.store.cursors import Source
    from worker.store.database import Database

_BATCH = 500
# As many as a page has messages: one transaction forms no more families anew than that.
_FORGOTTEN_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeping messages came to: files that were not known before, and sets that were not there.

    ``held_up`` says that some change has to be looked at again, when its set is no longer being worked on.
    ``set_aside`` are messages that cannot be kept.
    """

    files: int = 0
    sets: int = 0
    held_up: bool = False
    set_aside: tuple[int, ...] = ()


_KNOWN = text("""
    SELECT f.message_id, f.document_id, f.file_name, f.size, f.caption, f.is_protected, f.is_gone,
        coalesce(s.state = 'claimed', false) AS is_claimed
    FROM source_files f LEFT JOIN archive_sets s ON s.id = f.set_id
    WHERE f.channel_id = :channel AND f.message_id = ANY(:messages)
""")
_WRITE = text("""
    INSERT INTO source_files (channel_id, topic_id, message_id, document_id, file_name, size, mime_type,
        caption, poster_id, album_id, reply_to, is_protected, posted_at, family)
    VALUES (:channel, :topic, :message, :document, :name, :size, :mime,
        :caption, :poster, :album, :reply, :protected, :posted, :family)
    ON CONFLICT (channel_id, message_id) DO UPDATE SET document_id = excluded.document_id,
        file_name = excluded.file_name, size = excluded.size, mime_type = excluded.mime_type,
        caption = excluded.caption, is_protected = excluded.is_protected, family = excluded.family,
        sha256 = NULL, is_gone = false, superseded_by = NULL
""")
_REWORD = text("""
    UPDATE source_files SET caption = :caption, is_protected = :protected
    WHERE channel_id = :channel AND message_id = :message
""")
_TELEGRAM_ID = text("SELECT telegram_id FROM channels WHERE id = :channel")
# Relies on source_files_message_key.
_BETWEEN = text("""
    SELECT message_id FROM source_files
    WHERE channel_id = :channel AND message_id > :above AND message_id <= :up_to AND NOT is_gone
      AND (:topic = 0 OR topic_id = :topic) AND message_id <> ALL (CAST(:present AS integer[]))
    ORDER BY message_id LIMIT :most
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


async def keep_files(connection: AsyncConnection, channel_id: int, messages: Sequence[Message]) -> Kept:
    """Write a row for every file message, inside the scan's transaction, and form sets of what is there.

    A message that was edited to carry another file leaves its set; one whose words or protection alone have
    changed stays in it. Neither another file nor protection reaches a set that is being worked on: the change
    is held up.
    """
    if not messages:
        return Kept()
    await lock_channel(connection, channel_id)
    values = {"channel": channel_id, "messages": [message.message_id for message in messages]}
    known = {row.message_id: row for row in await connection.execute(_KNOWN, values)}
    changed = [m.message_id for m in messages if _is_changed(m, known.get(m.message_id))]
    families, stuck = await release_files(connection, channel_id, changed)
    files, is_protection_changed, is_held_up = 0, False, bool(stuck)
    for message in messages:
        row = known.get(message.message_id)
        if message.document is None or message.message_id in stuck:
            continue
        columns = _columns(channel_id, message)
        if row is None or message.message_id in changed:
            await connection.execute(_WRITE, columns)
            families.add(columns["family"])
            files += row is None
        elif row.is_protected != message.is_protected and row.is_claimed:
            is_held_up = True
        elif (row.caption, row.is_protected) != (message.text, message.is_protected):
            await connection.execute(_REWORD, columns)
            is_protection_changed |= row.is_protected != message.is_protected
    families.discard(NO_FAMILY)
    sets = await form_sets(connection, channel_id, families) if families else 0
    if is_protection_changed:
        telegram_id = (await connection.execute(_TELEGRAM_ID, {"channel": channel_id})).scalar_one()
        await apply_protection(connection, telegram_id)
    return Kept(files, sets, held_up=is_held_up)


def _is_changed(message: Message, row: Row[Any] | None) -> bool:
    if row is None:
        return False
    document = message.document
    if document is None:
        return not row.is_gone
    carried = (document.document_id, document.file_name, document.size, False)
    return carried != (row.document_id, row.file_name, row.size, row.is_gone)


def _columns(channel_id: int, message: Message) -> dict[str, Any]:
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


async def forget_files(connection: AsyncConnection, channel_id: int, messages: Collection[int]) -> Kept:
    """These messages are gone: the sets that missed nothing else wait for such a file from here on."""
    await lock_channel(connection, channel_id)
    families, stuck = await release_files(connection, channel_id, messages)
    sets = await form_sets(connection, channel_id, families - {NO_FAMILY})
    return Kept(0, sets, held_up=bool(stuck))


async def has_files(database: Database, source: Source, span: tuple[int, int]) -> bool:
    """Whether a file is known of a message above the first and up to the second id of ``span``."""
    return bool(await _files_between(database, source, span, (), most=1))


async def _files_between(
    database: Database, source: Source, span: tuple[int, int], but: Sequence[int], *, most: int
) -> Sequence[int]:
    values = {
        "channel": source.channel_id,
        "topic": source.topic_id,
        "above": span[0],
        "up_to": span[1],
        "present": list(but),
        "most": most,
    }
    async with database.reading() as connection:
        return (await connection.execute(_BETWEEN, values)).scalars().all()


async def forget_absent(
    database: Database, source: Source, span: tuple[int, int], present: Sequence[int]
) -> None:
    """Forget files of messages above the first and up to the second id of ``span`` that are not ``present``.

    Between two messages any number may have stood: they are forgotten some at a time, for good.
    """
    above, up_to = span
    while gone := await _files_between(database, source, (above, up_to), present, most=_FORGOTTEN_AT_ONCE):
        async with database.transaction("scan.absent") as connection:
            await require_hold(connection, source)
            await forget_files(connection, source.channel_id, gone)
        # Not from the start: the files of a set that is being worked on are left where they are.
        above = gone[-1]


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
