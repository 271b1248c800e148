"""Packages that the database does not know: made of what the destination's markers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from worker.domain.archive_name import recognise
from worker.errors import SetFailedError
from worker.store.decisions import decide_alone
from worker.store.originals import Original, save_originals
from worker.store.withdrawals import DELETED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.marked_set import MarkedSet
    from worker.store.database import Database

# Relies on package_parts_message_key; the messages of an upload are few. What stands there for a package that
# was withdrawn is recorded, and is nothing that anybody counts on.
_RECORDED = text("""
    SELECT k.message_id, p.state = 'withdrawn' FROM package_parts k JOIN packages p ON p.id = k.package_id
    WHERE k.dest_channel_id = :channel AND k.message_id = ANY(:ids)
    UNION
    SELECT q.message_id, u.state = 'done' AND p.state = 'withdrawn'
    FROM upload_parts q JOIN uploads u ON u.id = q.upload_id
    LEFT JOIN packages p ON p.content_hash = u.content_hash
    WHERE u.destination_id = :channel AND q.message_id = ANY(:ids)
""")
# Relies on package_parts_document.
_WITHDRAWN_DOCUMENTS = text("""
    SELECT k.document_id, k.message_id FROM package_parts k JOIN packages p ON p.id = k.package_id
    WHERE k.document_id = ANY(:documents) AND k.dest_channel_id = :channel AND p.state = 'withdrawn'
""")
_INSERT = text("""
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, source_channel_id,
        source_message_id, dest_channel_id, dest_message_id, is_multipart, part_count)
    SELECT :hash, :name, :size, :type, (SELECT id FROM channels WHERE telegram_id = :source),
        :source_message, :channel, :message, :multipart, :parts
    WHERE NOT EXISTS (SELECT FROM uploads WHERE content_hash = :hash AND state = 'open')
    ON CONFLICT (content_hash) DO UPDATE SET state = 'published', withdrawn_at = NULL, has_remains = false,
        metadata = 'pending',
        metadata_reason = NULL, metadata_attempts = 0, metadata_not_before = fleet_now(), file_count = 0,
        dest_channel_id = excluded.dest_channel_id, dest_message_id = excluded.dest_message_id,
        part_count = excluded.part_count, published_at = fleet_now()
    WHERE packages.state = 'withdrawn'
    RETURNING id
""")
# Sets that were left alone because the package had been deleted meet it again.
_WAKE = text("""
    UPDATE archive_sets SET state = 'ready', reason = NULL, not_before = fleet_now(), updated_at = fleet_now()
    WHERE content_hash = :hash AND (state = 'ready' OR state = 'skipped' AND starts_with(reason, :declined))
""")
_INSERT_PART = text("""
    INSERT INTO package_parts (package_id, ordinal, dest_channel_id, message_id, document_id, file_name,
        byte_offset, byte_length)
    VALUES (:package, :ordinal, :channel, :message, :document, :name, :offset, :length)
""")
# The set that the package was made of, as its first file's message tells; whoever works on it is left alone.
_LINK = text("""
    UPDATE archive_sets s SET state = 'published', package_id = :package, content_hash = :hash, reason = NULL,
        updated_at = fleet_now()
    FROM source_files f JOIN channels c ON c.id = f.channel_id
    WHERE f.set_id = s.id AND c.telegram_id = :source AND f.message_id = :source_message
      AND s.total_size = :size AND s.state IN ('ready', 'failed')
""")


async def recorded_messages(
    database: Database, channel_id: int, message_ids: Sequence[int]
) -> dict[int, bool]:
    """Those of a destination's messages that a package or an upload has a row for.

    True: only for a package that was withdrawn.
    """
    async with database.reading() as connection:
        rows = await connection.execute(_RECORDED, {"channel": channel_id, "ids": list(message_ids)})
        recorded: dict[int, bool] = {}
        for message_id, is_withdrawn in rows:
            recorded[message_id] = bool(is_withdrawn) and recorded.get(message_id, True)
        return recorded


async def withdrawn_documents(
    database: Database, channel_id: int, document_ids: Sequence[int]
) -> dict[int, int]:
    """Those of these documents that a withdrawn package has shown, and in which message."""
    async with database.reading() as connection:
        values = {"channel": channel_id, "documents": list(document_ids)}
        return {row[0]: row[1] for row in await connection.execute(_WITHDRAWN_DOCUMENTS, values)}


async def adopt_package(database: Database, found: MarkedSet, channel_id: int) -> int | None:
    """Write down a complete package with its parts and files; None if the content is known meanwhile.

    Called under the content's lock. The listing follows like that of any stub. A package that was withdrawn
    is published again, as these messages. What cannot be written is a ``SetFailedError``.
    """
    files = found.files
    first = files[0]
    name = recognise(first.file_name)
    values = {
        "hash": found.content_hash,
        "name": first.file_name if name is None or len(files) == 1 else f"{name.base}.{name.format.value}",
        "size": found.total_size,
        "type": name.format.value if name is not None else "unknown",
        "source": first.source_channel if found.is_worded_by_us else None,
        "source_message": first.source_message if found.is_worded_by_us else None,
        "channel": channel_id,
        "message": found.parts[0].message_id,
        "multipart": len(files) > 1,
        "parts": len(found.parts),
    }
    try:
        async with database.transaction("packages.adopt") as connection:
            await decide_alone(connection, found.content_hash)
            package_id: int | None = (await connection.execute(_INSERT, values)).scalar_one_or_none()
            if package_id is not None:
                await _write_content(connection, package_id, found, channel_id)
                await connection.execute(_WAKE, {"hash": found.content_hash, "declined": DELETED})
                if found.is_worded_by_us:
                    await connection.execute(_LINK, {**values, "package": package_id})
            return package_id
    except DBAPIError as error:
        raise SetFailedError(f"the database does not take it: {error.orig}") from error


async def _write_content(
    connection: AsyncConnection, package_id: int, found: MarkedSet, channel_id: int
) -> None:
    await connection.execute(text("DELETE FROM package_parts WHERE package_id = :id"), {"id": package_id})
    await _insert_parts(connection, package_id, found, channel_id)
    originals = [
        Original(f.file_name, f.file_size, f.source_channel, f.source_message, f.source_document)
        if found.is_worded_by_us
        # By somebody else's word that these bytes are that document, another archive would be passed over.
        else Original(f.file_name, f.file_size, 0, 0, 0)
        for f in found.files
    ]
    await save_originals(connection, package_id, originals)


async def _insert_parts(
    connection: AsyncConnection, package_id: int, found: MarkedSet, channel_id: int
) -> None:
    rows = [
        {
            "package": package_id,
            "ordinal": ordinal,
            "channel": channel_id,
            "message": part.message_id,
            "document": part.document_id,
            "name": part.file_name,
            "offset": part.marker.offset,
            "length": part.marker.length,
        }
        for ordinal, part in enumerate(found.parts)
    ]
    await connection.execute(_INSERT_PART, rows)
