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
# Relies on packages_remains.
_WITH_REMAINS = text("""
    SELECT id, content_hash, file_name, dest_channel_id FROM packages
    WHERE has_remains AND state = 'withdrawn' ORDER BY id LIMIT :limit
""")


async def packages_with_remains(database: Database, limit: int = 100) -> list[Remains]:
    """Withdrawn packages whose other messages have to be taken back, oldest first."""
    async with database.reading() as connection:
        return [Remains(*row) for row in await connection.execute(_WITH_REMAINS, {"limit": limit})]


async def left_of_package(database: Database, package_id: int) -> list[Removable]:
    """What uploads sent of this package, if it is withdrawn and as far as it may stand."""
    async with database.reading() as connection:
        rows = await connection.execute(_OF_PACKAGE, {"package": package_id})
        return [Removable(*row) for row in rows]


async def settle_remains(database: Database, remains: Remains) -> None:
    """Nothing is left of the package that is ours to take back; whoever waited for that goes on."""
    async with database.transaction("remains.settle") as connection:
        await connection.execute(
            text("UPDATE packages SET has_remains = false WHERE id = :package"),
            {"package": remains.package_id},
        )
        await wake_waiting(connection, remains.content_hash)
