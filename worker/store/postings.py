"""How a package's archive was posted: by whom, where, under which words, in which files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.archive_set import PostedFile

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class ArchivePosting:
    """What surrounds an archive. Without ``files`` only its name and perhaps its channel are known."""

    archive_name: str
    channel_id: int | None = None
    channel_title: str = ""
    category: str | None = None
    topic_title: str | None = None
    files: tuple[PostedFile, ...] = ()
    is_unproven: bool = False


# The posting that was published comes before those that turned out to be the same.
_POSTING = text("""
    SELECT p.file_name, c.id AS channel_id, coalesce(c.title, '') AS title, c.category, s.id AS set_id,
        coalesce(s.is_unproven, false) AS is_unproven,
        (SELECT max(cu.topic_title) FROM scan_cursors cu
         WHERE cu.channel_id = s.channel_id AND cu.topic_id = s.topic_id AND s.topic_id > 0) AS topic_title
    FROM packages p
    LEFT JOIN LATERAL (
        SELECT id, channel_id, topic_id, is_unproven FROM archive_sets WHERE package_id = p.id
        ORDER BY state = 'duplicate', id LIMIT 1
    ) s ON true
    LEFT JOIN channels c ON c.id = coalesce(s.channel_id, p.source_channel_id)
    WHERE p.id = :package
""")
_FILES = text("""
    SELECT message_id, document_id, file_name, size, CAST(extract(epoch FROM posted_at) AS bigint), poster_id,
        album_id, reply_to, topic_id, caption
    FROM source_files WHERE set_id = :set ORDER BY part_number
""")


async def posting_of(database: Database, package_id: int) -> ArchivePosting:
    """Where this package's archive came from, as far as it is known here."""
    async with database.reading() as connection:
        row = (await connection.execute(_POSTING, {"package": package_id})).one()
        files = await connection.execute(_FILES, {"set": row.set_id})
        return ArchivePosting(
            archive_name=row.file_name,
            channel_id=row.channel_id,
            channel_title=row.title,
            category=row.category,
            topic_title=row.topic_title,
            files=tuple(PostedFile(*file) for file in files),
            is_unproven=row.is_unproven,
        )
