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
from worker.store.uploads import load
from worker.store.visibility import may_see_from

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


# Whoever sees everything above the floor sees whatever has arrived.
_SEES_IT = """EXISTS (SELECT FROM memberships m WHERE m.channel_id = u.destination_id
    AND m.account_id = :account AND m.can_read AND m.visible_from <= u.floor_id + 1)"""
# These rely on uploads_abandoned.
_UNSETTLED = """
    FROM uploads u JOIN channels c ON c.id = u.destination_id AND c.is_destination
    WHERE u.state = 'abandoned' AND {which}
      AND EXISTS (SELECT FROM upload_parts p WHERE p.upload_id = u.id AND p.state = 'sending')
"""
_COULD_SETTLE = f"""
    SELECT a.id FROM memberships m JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
    WHERE m.channel_id = c.id AND m.can_read AND {may_see_from("u.floor_id + 1")} ORDER BY a.id
"""
_WHERE_UNSETTLED = text(f"""
    SELECT c.title, EXISTS ({_COULD_SETTLE}) AS is_seen {_UNSETTLED.format(which="u.content_hash = :hash")}
    ORDER BY is_seen, u.id LIMIT 1
""")
_MINE_TO_SETTLE = text(f"""
    SELECT u.id, u.content_hash {_UNSETTLED.format(which=_SEES_IT)} ORDER BY u.id LIMIT 100
""")
# Where an upload of the content is open, that is what is waited for.
_OF_WAITING_SET = """u.content_hash = (
        SELECT content_hash FROM archive_sets WHERE id = :set AND state IN ('ready', 'claimed'))
    AND NOT EXISTS (SELECT FROM uploads o WHERE o.content_hash = u.content_hash AND o.state = 'open')"""
_BEHIND_SET = text(f"""
    SELECT u.content_hash, ARRAY({_COULD_SETTLE}) {_UNSETTLED.format(which=_OF_WAITING_SET)}
    ORDER BY u.id LIMIT 1
""")
_VOUCH = text(f"""
    WITH vouched AS (
        UPDATE uploads SET fence = fence + 1
        WHERE id IN (SELECT u.id {_UNSETTLED.format(which="u.content_hash = :hash")}) RETURNING id
    )
    UPDATE upload_parts p SET state = 'planned' FROM vouched v
    WHERE p.upload_id = v.id AND p.state = 'sending'
""")


@dataclass(frozen=True, slots=True)
class Unseen:
    """Where a message may stand that nobody has seen; ``is_seen``: an account at work may look for it."""

    title: str
    is_seen: bool


async def where_unsettled(connection: AsyncConnection, content_hash: bytes) -> Unseen | None:
    """Where archives go, if a message of this content may stand there without anybody having seen it."""
    row = (await connection.execute(_WHERE_UNSETTLED, {"hash": content_hash})).one_or_none()
    return None if row is None else Unseen(*row)


@dataclass(frozen=True, slots=True)
class Unsure:
    """A content that waits until it is known what an upload of it has left; ``lookers`` could find out."""

    content_hash: bytes
    lookers: tuple[int, ...]


async def unsettled_behind(database: Database, set_id: int) -> Unsure | None:
    """What this set waits for, if that is what nobody has seen of an upload that was given up."""
    async with database.reading() as connection:
        row = (await connection.execute(_BEHIND_SET, {"set": set_id})).one_or_none()
        return None if row is None else Unsure(row[0], tuple(row[1]))


async def vouch_for_unseen(database: Database, content_hash: bytes) -> None:
    """A person's word that nobody has to look for what was given up. Called under the content's lock.

    Should it stand there after all, it is reported as doubled.
    """
    async with database.transaction("removals.vouched") as connection:
        await connection.execute(_VOUCH, {"hash": content_hash})
        await wake_waiting(connection, content_hash)


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
