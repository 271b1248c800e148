"""Messages that an intent recorded and no package refers to: the only ones that may ever be deleted.

A package that was withdrawn because one of its messages is gone claims the others no longer, while
``has_remains`` says that they are being taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import FenceLostError
from worker.store.sets import wake_waiting

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Removable:
    """A message that one part of an upload became."""

    upload_id: int
    ordinal: int
    content_hash: bytes
    destination_id: int
    message_id: int


_CONDITION = """
    p.state = 'sent' AND p.deleted_at IS NULL
    AND NOT EXISTS (SELECT FROM package_parts k
                    JOIN packages s ON s.id = k.package_id AND NOT (s.state = 'withdrawn' AND s.has_remains)
                    WHERE k.dest_channel_id = u.destination_id AND k.message_id = p.message_id)
"""
_LEFT = f"""
    SELECT u.id, p.ordinal, u.content_hash, u.destination_id, p.message_id
    FROM uploads u JOIN upload_parts p ON p.upload_id = u.id WHERE {_CONDITION} AND {{which}}
    ORDER BY u.id, p.ordinal
"""
_OF_UPLOAD = text(_LEFT.format(which="u.id = :upload"))
# What a withdrawn package leaves is taken back with it.
_OF_ENDED = text(
    _LEFT.format(
        which="""u.state <> 'open' AND (u.id, p.ordinal) > (:upload, :ordinal)
            AND NOT EXISTS (SELECT FROM packages r WHERE r.id = u.package_id AND r.has_remains)"""
    )
    + " LIMIT :limit"
)
# Relies on uploads_package.
_OF_PACKAGE = text(
    _LEFT.format(
        which="""u.state <> 'open' AND u.package_id = :package
            AND EXISTS (SELECT FROM packages w WHERE w.id = :package AND w.state = 'withdrawn')"""
    )
)
# Relies on packages_remains.
_WITH_REMAINS = text("""
    SELECT id, content_hash, file_name, dest_channel_id FROM packages
    WHERE has_remains AND state = 'withdrawn' ORDER BY id LIMIT :limit
""")
_REMOVABLE = text(f"""
    SELECT 1 FROM uploads u JOIN upload_parts p ON p.upload_id = u.id
    WHERE u.id = :upload AND u.fence = :fence AND p.ordinal = :ordinal AND {_CONDITION}
      AND (u.state <> 'open' OR u.reason IS NOT NULL)
""")


async def left_of(database: Database, upload_id: int) -> list[Removable]:
    """What this upload has sent and nobody refers to, in order."""
    async with database.reading() as connection:
        return [Removable(*row) for row in await connection.execute(_OF_UPLOAD, {"upload": upload_id})]


async def left_of_ended(database: Database, after: Removable | None, limit: int = 100) -> list[Removable]:
    """What uploads left at the destination when they ended, oldest first, from ``after`` on."""
    values = {
        "upload": after.upload_id if after else 0,
        "ordinal": after.ordinal if after else 0,
        "limit": limit,
    }
    async with database.reading() as connection:
        rows = await connection.execute(_OF_ENDED, values)
        return [Removable(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Remains:
    """A withdrawn package of which other messages may stand."""

    package_id: int
    content_hash: bytes
    name: str
    channel_id: int


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
    async with database.transaction("removals.settle") as connection:
        await connection.execute(
            text("UPDATE packages SET has_remains = false WHERE id = :package"),
            {"package": remains.package_id},
        )
        await wake_waiting(connection, remains.content_hash)


async def own_ended(database: Database, item: Removable) -> int:
    """Become the only one who acts for an ended upload; the fence to do it under."""
    async with database.transaction("removals.own") as connection:
        query = text(
            "UPDATE uploads SET fence = fence + 1 WHERE id = :upload AND state <> 'open' RETURNING fence"
        )
        row = (await connection.execute(query, {"upload": item.upload_id})).one_or_none()
    if row is None:
        raise FenceLostError(f"upload {item.upload_id} is open again")
    return int(row.fence)


async def require_removable(database: Database, item: Removable, fence: int) -> None:
    """Ask once more, right before the message is deleted."""
    async with database.reading() as connection:
        values = {"upload": item.upload_id, "ordinal": item.ordinal, "fence": fence}
        if (await connection.execute(_REMOVABLE, values)).one_or_none() is None:
            raise FenceLostError(f"message {item.message_id} is not to be removed any more")


async def mark_deleted(database: Database, item: Removable, fence: int) -> None:
    """The message is gone."""
    async with database.transaction("removals.deleted") as connection:
        values = {"upload": item.upload_id, "ordinal": item.ordinal, "fence": fence}
        await connection.execute(
            text("""
                UPDATE upload_parts p SET deleted_at = fleet_now() FROM uploads u
                WHERE u.id = p.upload_id AND u.id = :upload AND u.fence = :fence AND p.ordinal = :ordinal
            """),
            values,
        )
