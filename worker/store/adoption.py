"""Packages that the database does not know: made of what the destination's markers say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.archive_name import recognise
from worker.store.originals import Original, save_originals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.marked_set import MarkedSet
    from worker.store.database import Database

# Relies on package_parts_message_key; the messages of an upload are few.
_KNOWN = text("""
    SELECT message_id FROM package_parts WHERE dest_channel_id = :channel AND message_id = ANY(:ids)
    UNION
    SELECT p.message_id FROM upload_parts p JOIN uploads u ON u.id = p.upload_id
    WHERE u.destination_id = :channel AND p.message_id = ANY(:ids)
""")
_INSERT = text("""
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, source_channel_id,
        source_message_id, dest_channel_id, dest_message_id, is_multipart, part_count)
    SELECT :hash, :name, :size, :type, (SELECT id FROM channels WHERE telegram_id = :source),
        :source_message, :channel, :message, :multipart, :parts
    WHERE NOT EXISTS (SELECT FROM uploads WHERE content_hash = :hash AND state = 'open')
    ON CONFLICT (content_hash) DO NOTHING RETURNING id
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


async def known_messages(database: Database, channel_id: int, message_ids: Sequence[int]) -> set[int]:
    """Those of a destination's messages that a package or an upload has a row for."""
    async with database.reading() as connection:
        rows = await connection.execute(_KNOWN, {"channel": channel_id, "ids": list(message_ids)})
        return set(rows.scalars())


async def newest_known(database: Database, channel_id: int) -> int:
    """The id of the newest message of any package in this destination."""
    # Relies on package_parts_message_key.
    query = text("SELECT max(message_id) FROM package_parts WHERE dest_channel_id = :channel")
    async with database.reading() as connection:
        return (await connection.execute(query, {"channel": channel_id})).scalar_one() or 0


async def adopt_package(database: Database, found: MarkedSet, channel_id: int) -> int | None:
    """Write down a complete package with its parts and files; None if the content is known meanwhile.

    Called under the content's lock. The listing follows like that of any stub.
    """
    files = found.files
    first = files[0]
    name = recognise(first.file_name)
    values = {
        "hash": found.content_hash,
        "name": first.file_name if name is None or len(files) == 1 else f"{name.base}.{name.format.value}",
        "size": found.total_size,
        "type": name.format.value if name is not None else "unknown",
        "source": first.source_channel,
        "source_message": first.source_message,
        "channel": channel_id,
        "message": found.parts[0].message_id,
        "multipart": len(files) > 1,
        "parts": len(found.parts),
    }
    async with database.transaction("packages.adopt") as connection:
        package_id: int | None = (await connection.execute(_INSERT, values)).scalar_one_or_none()
        if package_id is None:
            return None
        await _insert_parts(connection, package_id, found, channel_id)
        originals = [
            Original(f.file_name, f.file_size, f.source_channel, f.source_message, f.source_document)
            for f in files
        ]
        await save_originals(connection, package_id, originals)
        await connection.execute(_LINK, {**values, "package": package_id})
        return package_id


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
