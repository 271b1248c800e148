"""Everything about one package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import UserError

if TYPE_CHECKING:
    from datetime import datetime

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class CardPart:
    """A message at the destination."""

    channel: str
    telegram_id: int
    username: str | None
    message_id: int
    file_name: str
    length: int

    @property
    def link(self) -> str:
        """Where a member of the channel sees it."""
        where = self.username or f"c/{self.telegram_id}"
        return f"https://t.me/{where}/{self.message_id}"


@dataclass(frozen=True, slots=True)
class CardOriginal:
    """A file as it was posted."""

    file_name: str
    size: int


@dataclass(frozen=True, slots=True)
class CardMember:
    """A file inside."""

    path: str
    size: int | None
    is_encrypted: bool


@dataclass(frozen=True, slots=True)
class CardPosting:
    """A set that is this package, or turned out to be the same."""

    set_id: int
    channel: str
    state: str
    posted_at: datetime


@dataclass(frozen=True, slots=True)
class PackageCard:
    """One package, with what belongs to it; ``members`` are the first of ``file_count``."""

    id: int
    name: str
    content_hash: bytes
    size: int
    archive_type: str
    state: str
    metadata: str
    metadata_reason: str | None
    file_count: int
    creator: str | None
    tags: list[str]
    marks: list[str]
    published_at: datetime
    withdrawn_at: datetime | None
    preview: str | None
    originals: tuple[CardOriginal, ...] = ()
    parts: tuple[CardPart, ...] = ()
    postings: tuple[CardPosting, ...] = ()
    members: tuple[CardMember, ...] = ()


_PACKAGE = text("""
    SELECT p.id, p.file_name, p.content_hash, p.file_size, p.archive_type, p.state, p.metadata,
        p.metadata_reason, p.file_count, p.creator, p.tags, p.marks, p.published_at, p.withdrawn_at,
        v.kind || ': ' || v.origin
    FROM packages p LEFT JOIN previews v ON v.package_id = p.id WHERE p.id = :package
""")
_ORIGINALS = text(
    "SELECT file_name, size FROM package_originals WHERE package_id = :package ORDER BY ordinal"
)
_PARTS = text("""
    SELECT c.title, c.telegram_id, c.username, p.message_id, p.file_name, p.byte_length
    FROM package_parts p JOIN channels c ON c.id = p.dest_channel_id
    WHERE p.package_id = :package ORDER BY p.ordinal
""")
# Relies on archive_sets_package.
_POSTINGS = text("""
    SELECT s.id, c.title, s.state, s.posted_at FROM archive_sets s JOIN channels c ON c.id = s.channel_id
    WHERE s.package_id = :package ORDER BY s.state = 'duplicate', s.id LIMIT 100
""")
_MEMBERS = text("""
    SELECT path, size, is_encrypted FROM package_files WHERE package_id = :package AND NOT is_dir
    ORDER BY ordinal LIMIT :members
""")


async def package_card(database: Database, package_id: int, *, members: int) -> PackageCard:
    """All about this package, with so many of the files inside."""
    key = {"package": package_id}
    async with database.reading() as connection:
        row = (await connection.execute(_PACKAGE, key)).one_or_none()
        if row is None:
            raise UserError(f"there is no package {package_id}", remedy="see: worker packages list")
        inside = await connection.execute(_MEMBERS, {**key, "members": members})
        return replace(
            PackageCard(*row),
            originals=tuple(CardOriginal(*item) for item in await connection.execute(_ORIGINALS, key)),
            parts=tuple(CardPart(*item) for item in await connection.execute(_PARTS, key)),
            postings=tuple(CardPosting(*item) for item in await connection.execute(_POSTINGS, key)),
            members=tuple(CardMember(*item) for item in inside),
        )
