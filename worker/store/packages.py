"""Packages: what the destination holds, once per content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from worker.store import uploads
from worker.store.originals import Original, save_originals
from worker.store.previews import save_preview
from worker.store.sets import mark_published, wake_waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.listing import Entry
    from worker.domain.preview import Preview
    from worker.store.database import Database
    from worker.store.sets import Claim
    from worker.store.uploads import Intent


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the second phase finds out about a package."""

    entries: Sequence[Entry]
    marks: Sequence[str] = ()
    creator: str | None = None
    tags: Sequence[str] = ()
    preview: Preview | None = None
    unlisted: int = 0  # members beyond the listing's limit, of which nothing else is known


_MOST = 2**63 - 1
_MOST_FILES = 2**31 - 1


async def package_with(connection: AsyncConnection, content_hash: bytes) -> int | None:
    """The published package of this content, if there is one. A withdrawn one does not count."""
    query = text("SELECT id FROM packages WHERE content_hash = :hash AND state = 'published'")
    package_id: int | None = (await connection.execute(query, {"hash": content_hash})).scalar_one_or_none()
    return package_id


# Its listing follows at once, and is counted before it begins: it may be what ends the process. Until another
# one is begun, both moments are the same.
_INSERT = text("""
    WITH moment AS MATERIALIZED (SELECT fleet_now())
    INSERT INTO packages (content_hash, file_name, file_size, archive_type, source_channel_id,
        source_message_id, dest_channel_id, dest_message_id, is_multipart, part_count, ingestion_run_id,
        metadata_attempts, metadata_not_before, published_at)
    VALUES (:hash, :name, :size, :type, :source,
        :source_message, :dest, :dest_message, :multipart, :parts, :run, 1, (TABLE moment), (TABLE moment))
    ON CONFLICT (content_hash) DO UPDATE SET state = 'published', withdrawn_at = NULL, metadata = 'pending',
        has_remains = false,
        metadata_reason = NULL, metadata_attempts = 1, file_count = 0,
        metadata_not_before = excluded.metadata_not_before, published_at = excluded.published_at,
        dest_channel_id = excluded.dest_channel_id, dest_message_id = excluded.dest_message_id,
        part_count = excluded.part_count, ingestion_run_id = excluded.ingestion_run_id
    WHERE packages.state = 'withdrawn'
    RETURNING id
""")
_INSERT_PART = text("""
    INSERT INTO package_parts (package_id, ordinal, dest_channel_id, message_id, document_id, file_name,
        byte_offset, byte_length)
    SELECT :package, p.ordinal, u.destination_id, p.message_id, p.document_id, p.file_name, p.byte_offset,
        p.byte_length
    FROM upload_parts p JOIN uploads u ON u.id = p.upload_id WHERE u.id = :upload
""")


async def record_stub(database: Database, claim: Claim, intent: Intent, run_id: int | None) -> int:
    """In one transaction: the stub with every message id, the intent done, the set published."""
    async with database.transaction("packages.stub") as connection:
        await uploads.require_intent(connection, intent)
        package_id: int = (
            await connection.execute(
                _INSERT,
                {
                    "hash": intent.content_hash,
                    "name": claim.name,
                    "size": intent.total_size,
                    "type": claim.format,
                    "source": claim.channel_id,
                    "source_message": claim.parts[0].message_id,
                    "dest": intent.destination_id,
                    "dest_message": intent.parts[0].message_id,
                    "multipart": len(claim.parts) > 1,
                    "parts": len(intent.parts),
                    "run": run_id,
                },
            )
        ).scalar_one()
        await connection.execute(text("DELETE FROM package_parts WHERE package_id = :id"), {"id": package_id})
        await connection.execute(_INSERT_PART, {"package": package_id, "upload": intent.upload_id})
        await save_originals(connection, package_id, _originals(claim))
        await uploads.finish(connection, intent, package_id)
        await mark_published(connection, claim, package_id)
        await wake_waiting(connection, intent.content_hash)
        return package_id


async def package_of(database: Database, intent: Intent) -> int | None:
    """The package that this upload became; None if it has not."""
    async with database.reading() as connection:
        query = text("SELECT package_id FROM uploads WHERE id = :upload AND state = 'done'")
        package_id: int | None = (
            await connection.execute(query, {"upload": intent.upload_id})
        ).scalar_one_or_none()
        return package_id


def _originals(claim: Claim) -> list[Original]:
    return [
        Original(part.file_name, part.size, claim.source_telegram_id, part.message_id, part.document_id)
        for part in claim.parts
    ]


async def complete(database: Database, package_id: int, metadata: Metadata) -> None:
    """Phase two, all at once. The set that made the package is indexed with it."""
    async with database.transaction("packages.complete") as connection:
        await connection.execute(text("DELETE FROM package_files WHERE package_id = :id"), {"id": package_id})
        if metadata.entries:
            rows = [_file_values(package_id, n, file) for n, file in enumerate(metadata.entries)]
            await connection.execute(_INSERT_FILE, rows)
        await save_preview(connection, package_id, metadata.preview)
        files = sum(not file.is_dir for file in metadata.entries) + metadata.unlisted
        await connection.execute(
            _COMPLETE,
            {
                "id": package_id,
                "count": min(files, _MOST_FILES),
                "marks": list(metadata.marks),
                "creator": metadata.creator,
                "tags": list(metadata.tags),
            },
        )
        await connection.execute(_INDEXED, {"id": package_id})


_COMPLETE = text("""
    UPDATE packages SET metadata = 'complete', metadata_reason = NULL, metadata_attempts = 0,
        indexed_at = fleet_now(),
        file_count = :count, marks = :marks, creator = :creator, tags = :tags WHERE id = :id
""")
_INDEXED = text("""
    UPDATE archive_sets SET state = 'indexed', updated_at = fleet_now()
    WHERE package_id = :id AND state = 'published'
""")
_INSERT_FILE = text("""
    INSERT INTO package_files (package_id, ordinal, path, size, compressed_size, crc32, modified_at, is_dir,
        is_encrypted)
    VALUES (:package, :ordinal, :path, :size, :compressed, :crc32, :modified, :is_dir, :encrypted)
""")


def _file_values(package_id: int, ordinal: int, file: Entry) -> dict[str, Any]:
    return {
        "package": package_id,
        "ordinal": ordinal,
        # PostgreSQL's text knows every character but this one.
        "path": file.path.replace("\0", "\ufffd"),
        "size": _bounded(file.size),
        "compressed": _bounded(file.compressed_size),
        "crc32": file.crc32,
        "modified": _local_time(file.modified),
        "is_dir": file.is_dir,
        "encrypted": file.encrypted,
    }


def _bounded(size: int | None) -> int | None:
    """A lying header may claim more than a bigint holds."""
    return None if size is None else min(size, _MOST)


def _local_time(text_: str | None) -> datetime | None:
    return None if text_ is None else datetime.fromisoformat(text_).replace(tzinfo=None)
