"""Packages as people look for them: the newest, or by words in their names and in the files inside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker.store.database import Database

# A trigram index answers for words of three characters and more; shorter ones are only checked.
_SHORTEST = 3
# So many members that match are looked at: whoever searches for "jpg" gets some packages, not all of them.
_MEMBERS_SEEN = 500
_PATHS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CataloguePackage:
    """A package in a list."""

    id: int
    name: str
    size: int
    archive_type: str
    state: str
    metadata: str
    file_count: int
    part_count: int
    creator: str | None
    tags: list[str]
    marks: list[str]
    published_at: datetime
    source: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """A package that a search found, by its own name or by these files in it."""

    package: CataloguePackage
    paths: tuple[str, ...] = ()


_COLUMNS = """
    p.id, p.file_name, p.file_size, p.archive_type, p.state, p.metadata, p.file_count, p.part_count,
    p.creator, p.tags, p.marks, p.published_at, c.title
"""
_FROM = "FROM packages p LEFT JOIN channels c ON c.id = p.source_channel_id"


async def list_packages(
    database: Database,
    *,
    limit: int,
    before: int | None = None,
    creator: str | None = None,
    tag: str | None = None,
    pending: bool = False,
) -> list[CataloguePackage]:
    """The newest packages, or those before one. Relies on the key, packages_creator and packages_tags."""
    conditions = ["true"]
    if before is not None:
        conditions.append("p.id < :before")
    if creator is not None:
        conditions.append("lower(p.creator) = lower(:creator)")
    if tag is not None:
        conditions.append("p.tags @> ARRAY[CAST(:tag AS text)]")
    if pending:
        conditions.append("p.metadata <> 'complete'")
    query = f"SELECT {_COLUMNS} {_FROM} WHERE {' AND '.join(conditions)} ORDER BY p.id DESC LIMIT :limit"
    values = {"before": before, "creator": creator, "tag": tag and tag.casefold(), "limit": limit}
    async with database.reading() as connection:
        used = {name: value for name, value in values.items() if f":{name}" in query}
        return [CataloguePackage(*row) for row in await connection.execute(text(query), used)]


async def search_packages(database: Database, words: str, *, limit: int) -> list[Found]:
    """Published packages whose name holds every word, the newest first; then those with such files inside."""
    patterns = search_patterns(words)
    found = [Found(package) for package in await _by_name(database, patterns, limit)]
    if len(found) < limit:
        known = {item.package.id for item in found}
        inside = await _by_member(database, patterns)
        more = [package_id for package_id in inside if package_id not in known][: limit - len(found)]
        found += [Found(package, tuple(inside[package.id])) for package in await _packages(database, more)]
    return found


def search_patterns(words: str) -> list[str]:
    """What every match has to look like, one pattern per word."""
    each = words.replace("\0", " ").split()
    if not any(len(word) >= _SHORTEST for word in each):
        raise UserError(
            f"{words!r} is too short to search for", remedy=f"give a word of at least {_SHORTEST} characters"
        )
    return ["%" + re.sub(r"([\\%_])", r"\\\1", word) + "%" for word in each]


def _all_match(column: str, patterns: Sequence[str]) -> tuple[str, dict[str, Any]]:
    # Spelled out one by one: the index does not serve ILIKE ALL (array).
    condition = " AND ".join(f"{column} ILIKE :word{number}" for number in range(len(patterns)))
    return condition, {f"word{number}": pattern for number, pattern in enumerate(patterns)}


async def _by_name(database: Database, patterns: Sequence[str], limit: int) -> list[CataloguePackage]:
    """Relies on packages_name_search, or on the key where a word is common."""
    condition, values = _all_match("p.file_name", patterns)
    query = text(
        f"SELECT {_COLUMNS} {_FROM} WHERE p.state = 'published' AND {condition}"
        " ORDER BY p.id DESC LIMIT :limit"
    )
    async with database.reading() as connection:
        return [CataloguePackage(*row) for row in await connection.execute(query, {**values, "limit": limit})]


async def _by_member(database: Database, patterns: Sequence[str]) -> dict[int, list[str]]:
    """Packages by number with some of their files that match. Relies on package_files_path_search."""
    condition, values = _all_match("path", patterns)
    query = text(f"SELECT package_id, path FROM package_files WHERE {condition} LIMIT :seen")
    paths: dict[int, list[str]] = {}
    async with database.reading() as connection:
        for row in await connection.execute(query, {**values, "seen": _MEMBERS_SEEN}):
            shown = paths.setdefault(row.package_id, [])
            if len(shown) < _PATHS_SHOWN:
                shown.append(row.path)
    return dict(sorted(paths.items(), reverse=True))


async def _packages(database: Database, ids: Sequence[int]) -> list[CataloguePackage]:
    query = text(
        f"SELECT {_COLUMNS} {_FROM} WHERE p.id = ANY(:ids) AND p.state = 'published' ORDER BY p.id DESC"
    )
    async with database.reading() as connection:
        return [CataloguePackage(*row) for row in await connection.execute(query, {"ids": list(ids)})]
