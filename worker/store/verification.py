"""What the database says a destination holds, in pages; and what it knows of messages found there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.package_content import PackageContent, StoredFile, StoredPart

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from sqlalchemy import TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class HoldingChannel:
    """A channel in which packages lie, or will."""

    id: int
    title: str
    packages: int


_CHANNELS = text("""
    SELECT c.id, c.title, count(p.id) FROM channels c
    LEFT JOIN packages p ON p.dest_channel_id = c.id AND p.state = 'published'
    GROUP BY c.id HAVING count(p.id) > 0 OR bool_or(c.is_destination) ORDER BY c.id
""")
# Relies on the key: packages of other channels are rare, since a destination is seldom changed.
_PAGE = text("""
    SELECT id FROM packages WHERE id > :after AND dest_channel_id = :channel AND state = 'published'
    ORDER BY id LIMIT :limit
""")
_SAMPLE = text("""
    SELECT id FROM packages WHERE dest_channel_id = :channel AND state = 'published'
    ORDER BY random() LIMIT :limit
""")
_PACKAGES = text("""
    SELECT id, file_name, content_hash, file_size, state FROM packages WHERE id = ANY(:ids) ORDER BY id
""")
_PARTS = text("""
    SELECT package_id, dest_channel_id, message_id, document_id, file_name, byte_offset, byte_length
    FROM package_parts WHERE package_id = ANY(:ids) ORDER BY package_id, byte_offset, ordinal
""")
_FILES = text("""
    SELECT package_id, file_name, size FROM package_originals WHERE package_id = ANY(:ids)
    ORDER BY package_id, ordinal
""")
# Relies on package_parts_message_key.
_KNOWN = text("""
    SELECT message_id FROM package_parts WHERE dest_channel_id = :channel AND message_id = ANY(:ids)
""")
# Relies on uploads_one_live_intent and packages_content_hash_key.
_UNDER_WAY = text("SELECT content_hash FROM uploads WHERE state = 'open' AND content_hash = ANY(:hashes)")
_PUBLISHED = text("""
    SELECT content_hash FROM packages WHERE state = 'published' AND content_hash = ANY(:hashes)
""")


async def holding_channels(database: Database) -> list[HoldingChannel]:
    """Where packages lie."""
    async with database.reading() as connection:
        return [HoldingChannel(*row) for row in await connection.execute(_CHANNELS)]


async def contents_in(
    database: Database, channel_id: int, *, sample: int | None, step: int = 100
) -> AsyncIterator[list[PackageContent]]:
    """All packages of a channel, some at a time; or so many, chosen by chance."""
    if sample is not None:
        async with database.reading() as connection:
            values = {"channel": channel_id, "limit": sample}
            chosen = sorted((await connection.execute(_SAMPLE, values)).scalars())
        for start in range(0, len(chosen), step):
            yield await _contents(database, chosen[start : start + step])
        return
    after = 0
    while True:
        async with database.reading() as connection:
            values = {"channel": channel_id, "after": after, "limit": step}
            ids = list((await connection.execute(_PAGE, values)).scalars())
        if not ids:
            return
        yield await _contents(database, ids)
        after = ids[-1]


async def _contents(database: Database, ids: Sequence[int]) -> list[PackageContent]:
    async with database.reading() as connection:
        key = {"ids": list(ids)}
        parts: dict[int, list[StoredPart]] = {}
        for package_id, *part in await connection.execute(_PARTS, key):
            parts.setdefault(package_id, []).append(StoredPart(*part))
        files: dict[int, list[StoredFile]] = {}
        for package_id, *file in await connection.execute(_FILES, key):
            files.setdefault(package_id, []).append(StoredFile(*file))
        return [
            PackageContent(
                package_id=row.id,
                name=row.file_name,
                content_hash=row.content_hash,
                size=row.file_size,
                state=row.state,
                parts=tuple(parts.get(row.id, ())),
                files=tuple(files.get(row.id, ())),
            )
            for row in await connection.execute(_PACKAGES, key)
        ]


async def unknown_among(database: Database, channel_id: int, messages: Collection[int]) -> set[int]:
    """Those of a destination's messages that are no part of any package."""
    async with database.reading() as connection:
        rows = await connection.execute(_KNOWN, {"channel": channel_id, "ids": list(messages)})
        return set(messages) - set(rows.scalars())


async def accounted_for(database: Database, hashes: Collection[bytes]) -> tuple[set[bytes], set[bytes]]:
    """Those of these contents that are being published at the moment, and those that are."""
    async with database.reading() as connection:
        return (
            await _hashes(connection, _UNDER_WAY, hashes),
            await _hashes(connection, _PUBLISHED, hashes),
        )


async def _hashes(connection: AsyncConnection, query: TextClause, hashes: Collection[bytes]) -> set[bytes]:
    return set((await connection.execute(query, {"hashes": list(hashes)})).scalars())
