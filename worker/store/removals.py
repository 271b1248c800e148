"""Messages that an intent recorded and no package refers to: the only ones that may ever be deleted.

A package that was withdrawn because one of its messages is gone claims the others no longer, while
``has_remains`` says that they are being taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import FenceLostError
from worker.store.uploads import load

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database
    from worker.store.uploads import Intent


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
LEFT = f"""
    SELECT u.id, p.ordinal, u.content_hash, u.destination_id, p.message_id
    FROM uploads u JOIN upload_parts p ON p.upload_id = u.id WHERE {_CONDITION} AND {{which}}
    ORDER BY u.id, p.ordinal
"""
_OF_UPLOAD = text(LEFT.format(which="u.id = :upload"))
# What a withdrawn package leaves is taken back with it.
_OF_ENDED = text(
    LEFT.format(
        which="""u.state <> 'open' AND (u.id, p.ordinal) > (:upload, :ordinal)
            AND NOT EXISTS (SELECT FROM packages r WHERE r.id = u.package_id AND r.has_remains
                            AND r.dest_channel_id = u.destination_id)"""
    )
    + " LIMIT :limit"
)
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


async def own_ended(database: Database, upload_id: int) -> int:
    """Become the only one who acts for an ended upload; the fence to do it under."""
    async with database.transaction("removals.own") as connection:
        query = text(
            "UPDATE uploads SET fence = fence + 1 WHERE id = :upload AND state <> 'open' RETURNING fence"
        )
        row = (await connection.execute(query, {"upload": upload_id})).one_or_none()
    if row is None:
        raise FenceLostError(f"upload {upload_id} is open again")
    return int(row.fence)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """An upload that was given up while nobody could see whether some of its parts had arrived."""

    upload_id: int
    content_hash: bytes


_SEEN_WHOLE = """u.destination_id IN (
    SELECT channel_id FROM memberships WHERE account_id = :account AND can_read AND visible_from = 0)"""
# Both rely on uploads_abandoned.
_UNSETTLED = """
    FROM uploads u JOIN channels c ON c.id = u.destination_id AND c.is_destination
    WHERE u.state = 'abandoned' AND {which}
      AND EXISTS (SELECT FROM upload_parts p WHERE p.upload_id = u.id AND p.state = 'sending')
"""
_IS_UNSETTLED = text(f"SELECT 1 {_UNSETTLED.format(which='u.content_hash = :hash')} LIMIT 1")
_MINE_TO_SETTLE = text(f"""
    SELECT u.id, u.content_hash {_UNSETTLED.format(which=_SEEN_WHOLE)} ORDER BY u.id LIMIT 100
""")


async def is_unsettled(connection: AsyncConnection, content_hash: bytes) -> bool:
    """Whether a message of this content may stand where archives go without anybody having seen it."""
    return (await connection.execute(_IS_UNSETTLED, {"hash": content_hash})).one_or_none() is not None


async def unsettled_for(database: Database, account_id: int) -> list[Unsettled]:
    """What was given up unseen, and this account could look for."""
    async with database.reading() as connection:
        return [Unsettled(*row) for row in await connection.execute(_MINE_TO_SETTLE, {"account": account_id})]


async def ended_intent(database: Database, upload_id: int) -> Intent:
    """An upload that was given up, with its parts."""
    async with database.reading() as connection:
        return await load(connection, upload_id, "abandoned")


async def settle_found(
    database: Database, upload_id: int, fence: int, ordinal: int, *, message_id: int, document_id: int
) -> None:
    """A part of a given-up upload has arrived after all: from here on its message can be removed."""
    values = {"upload": upload_id, "fence": fence, "ordinal": ordinal}
    async with database.transaction("removals.found") as connection:
        await connection.execute(
            text("""
                UPDATE upload_parts p SET state = 'sent', message_id = :message, document_id = :document,
                    sent_at = fleet_now() FROM uploads u
                WHERE u.id = p.upload_id AND u.id = :upload AND u.fence = :fence AND u.state = 'abandoned'
                  AND p.ordinal = :ordinal
            """),
            {**values, "message": message_id, "document": document_id},
        )


async def settle_absent(database: Database, upload_id: int, fence: int) -> None:
    """The destination was looked through: no other part of this upload has arrived, and none will."""
    async with database.transaction("removals.absent") as connection:
        await connection.execute(
            text("""
                UPDATE upload_parts p SET state = 'planned' FROM uploads u
                WHERE u.id = p.upload_id AND u.id = :upload AND u.fence = :fence AND u.state = 'abandoned'
                  AND p.state = 'sending'
            """),
            {"upload": upload_id, "fence": fence},
        )


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
