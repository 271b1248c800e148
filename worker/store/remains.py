"""What may stand of packages that were withdrawn because another message of them is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.removals import LEFT, Removable
from worker.store.sets import wake_waiting

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Remains:
    """A withdrawn package of which other messages may stand."""

    package_id: int
    content_hash: bytes
    name: str
    channel_id: int


# Relies on uploads_package.
_OF_PACKAGE = text(
    LEFT.format(
        which="""u.state <> 'open' AND u.package_id = :package
            AND EXISTS (SELECT FROM packages w WHERE w.id = :package AND w.state = 'withdrawn'
                        AND w.dest_channel_id = u.destination_id)"""
    )
)
_WITH_REMAINS = """
    SELECT p.id, p.content_hash, p.file_name, p.dest_channel_id FROM packages p
    WHERE p.has_remains AND p.state = 'withdrawn' AND {which}
"""
# Relies on packages_remains.
_IN_CHANNEL = text(_WITH_REMAINS.format(which="p.dest_channel_id = :channel ORDER BY p.id LIMIT :limit"))
_BEHIND_SET = text(
    _WITH_REMAINS.format(which="p.content_hash = (SELECT content_hash FROM archive_sets WHERE id = :set)")
)


async def packages_with_remains(database: Database, channel_id: int, limit: int = 100) -> list[Remains]:
    """Withdrawn packages whose other messages have to be taken back from this channel, oldest first."""
    async with database.reading() as connection:
        values = {"channel": channel_id, "limit": limit}
        return [Remains(*row) for row in await connection.execute(_IN_CHANNEL, values)]


async def remains_behind(database: Database, set_id: int) -> Remains | None:
    """What this set's content waits for, if it is what stands of a withdrawn package."""
    async with database.reading() as connection:
        row = (await connection.execute(_BEHIND_SET, {"set": set_id})).one_or_none()
        return None if row is None else Remains(*row)


async def left_of_package(database: Database, package_id: int) -> list[Removable]:
    """What uploads sent of this package, if it is withdrawn and as far as it may stand."""
    async with database.reading() as connection:
        rows = await connection.execute(_OF_PACKAGE, {"package": package_id})
        return [Removable(*row) for row in rows]


async def settle_remains(database: Database, remains: Remains) -> None:
    """Nothing is left that is ours to take back, or a person waits for it no longer; its content goes on."""
    async with database.transaction("remains.settle") as connection:
        await connection.execute(
            text("UPDATE packages SET has_remains = false WHERE id = :package"),
            {"package": remains.package_id},
        )
        await wake_waiting(connection, remains.content_hash)
