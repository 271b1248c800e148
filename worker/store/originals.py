"""The files of a package as they were posted: their boundaries, and the documents they are known by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Original:
    """One file of a package, and the message it was first posted in."""

    file_name: str
    size: int
    source_channel: int
    source_message: int
    document_id: int


_INSERT = text("""
    INSERT INTO package_originals (package_id, ordinal, file_name, size, source_channel, source_message,
        document_id)
    VALUES (:package, :ordinal, :name, :size, :channel, :message, :document)
""")
_OF_PACKAGE = text("""
    SELECT file_name, size, source_channel, source_message, document_id FROM package_originals
    WHERE package_id = :package ORDER BY ordinal
""")
# Relies on package_originals_document, source_files_document and package_parts_document. A package is known
# by its documents at the destination, by those it was made of, wherever they are posted again, and by those
# of every set that turned out to be the same.
_KNOWN = text("""
    SELECT known.package_id FROM (
        SELECT o.package_id, array_agg(o.document_id ORDER BY o.ordinal) AS documents
        FROM package_originals o
        WHERE o.package_id IN (SELECT package_id FROM package_originals WHERE document_id = :first)
        GROUP BY o.package_id
        UNION ALL
        SELECT s.package_id, array_agg(f.document_id ORDER BY f.part_number)
        FROM archive_sets s JOIN source_files f ON f.set_id = s.id
        WHERE s.package_id IS NOT NULL
          AND s.id IN (SELECT set_id FROM source_files WHERE document_id = :first)
        GROUP BY s.id
        UNION ALL
        SELECT pp.package_id, array_agg(pp.document_id ORDER BY pp.ordinal) FROM package_parts pp
        WHERE pp.package_id IN (SELECT package_id FROM package_parts WHERE document_id = :first)
        GROUP BY pp.package_id
    ) known JOIN packages p ON p.id = known.package_id AND p.state = 'published'
    WHERE known.documents = CAST(:documents AS bigint[]) ORDER BY known.package_id LIMIT 1
""")


async def save_originals(connection: AsyncConnection, package_id: int, files: Sequence[Original]) -> None:
    """Replace what is known of a package's files, inside the transaction that makes the package."""
    await connection.execute(
        text("DELETE FROM package_originals WHERE package_id = :package"), {"package": package_id}
    )
    rows = [
        {
            "package": package_id,
            "ordinal": ordinal,
            "name": file.file_name,
            "size": file.size,
            "channel": file.source_channel,
            "message": file.source_message,
            "document": file.document_id,
        }
        for ordinal, file in enumerate(files)
    ]
    await connection.execute(_INSERT, rows)


async def originals_of(database: Database, package_id: int) -> list[Original]:
    """The files of a package in order."""
    async with database.reading() as connection:
        return [Original(*row) for row in await connection.execute(_OF_PACKAGE, {"package": package_id})]


async def package_of_documents(connection: AsyncConnection, document_ids: Sequence[int]) -> int | None:
    """The published package that consists of exactly these documents, in this order; None if none does."""
    values = {"first": document_ids[0], "documents": list(document_ids)}
    package_id: int | None = (await connection.execute(_KNOWN, values)).scalar_one_or_none()
    return package_id
