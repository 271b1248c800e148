"""Upload intents: what is about to be sent, written before it is, so that a crash can be put right.

An intent carries, for every part, the ``random_id`` that Telegram deduplicates by. It is made once and never
made anew while the fate of its part is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from worker.errors import FenceLostError
from worker.store.sets import require_claim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database
    from worker.store.sets import Claim


@dataclass(frozen=True, slots=True)
class IntentPart:
    """A window of the content that becomes one message."""

    ordinal: int
    file_name: str
    offset: int
    length: int
    random_id: int
    caption: str


@dataclass(frozen=True, slots=True)
class UploadPart:
    """A planned part and what has become of it."""

    plan: IntentPart
    state: str
    message_id: int | None


@dataclass(frozen=True, slots=True)
class Intent:
    """An open upload. Every write for it carries the fence."""

    upload_id: int
    fence: int
    content_hash: bytes
    set_id: int
    account_id: int
    destination_id: int
    floor_id: int
    total_size: int
    parts: tuple[UploadPart, ...]


async def open_intent_for(connection: AsyncConnection, content_hash: bytes) -> tuple[int, int] | None:
    """The open upload of this content and its account, if there is one."""
    query = text("SELECT id, account_id FROM uploads WHERE content_hash = :hash AND state = 'open'")
    row = (await connection.execute(query, {"hash": content_hash})).one_or_none()
    return None if row is None else (row.id, row.account_id)


async def create_intent(
    database: Database,
    claim: Claim,
    *,
    account_id: int,
    destination_id: int,
    floor_id: int,
    content_hash: bytes,
    parts: Iterable[IntentPart],
) -> Intent:
    """Commit what is about to be sent."""
    async with database.transaction("uploads.intent") as connection:
        await require_claim(connection, claim)
        upload_id = (
            await connection.execute(
                text("""
                    INSERT INTO uploads (content_hash, set_id, account_id, destination_id, floor_id,
                        total_size)
                    VALUES (:hash, :set, :account, :destination, :floor, :total) RETURNING id
                """),
                {
                    "hash": content_hash,
                    "set": claim.set_id,
                    "account": account_id,
                    "destination": destination_id,
                    "floor": floor_id,
                    "total": claim.total_size,
                },
            )
        ).scalar_one()
        for part in parts:
            await connection.execute(
                text("""
                    INSERT INTO upload_parts (upload_id, ordinal, file_name, byte_offset, byte_length,
                        random_id, caption)
                    VALUES (:upload, :ordinal, :name, :offset, :length, :random_id, :caption)
                """),
                {
                    "upload": upload_id,
                    "ordinal": part.ordinal,
                    "name": part.file_name,
                    "offset": part.offset,
                    "length": part.length,
                    "random_id": part.random_id,
                    "caption": part.caption,
                },
            )
        return await _load(connection, upload_id)


# Relies on uploads_open_by_account. A claimed set is being published right now, by the account itself.
_OPEN = text("""
    SELECT u.id FROM uploads u JOIN archive_sets s ON s.id = u.set_id
    WHERE u.account_id = :account AND u.state = 'open' AND s.state <> 'claimed'
      AND (NOT :due_only OR s.not_before <= fleet_now()) ORDER BY u.id
""")


async def open_intents_of(database: Database, account_id: int, *, due_only: bool = False) -> list[int]:
    """The uploads this account has begun and left, oldest first; perhaps only those that need not wait."""
    async with database.reading() as connection:
        values = {"account": account_id, "due_only": due_only}
        return list((await connection.execute(_OPEN, values)).scalars())


async def take_over(database: Database, upload_id: int) -> Intent:
    """Become the owner of an open intent: its fence grows, and whoever had it before can write no more."""
    async with database.transaction("uploads.take_over") as connection:
        await connection.execute(
            text("UPDATE uploads SET fence = fence + 1 WHERE id = :upload AND state = 'open'"),
            {"upload": upload_id},
        )
        return await _load(connection, upload_id)


async def mark_sending(database: Database, intent: Intent, ordinal: int) -> None:
    """From here on the fate of this part may be unknown."""
    async with database.transaction("uploads.sending") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("""
                UPDATE upload_parts SET state = 'sending'
                WHERE upload_id = :upload AND ordinal = :ordinal AND state = 'planned'
            """),
            {"upload": intent.upload_id, "ordinal": ordinal},
        )


async def mark_sent(
    database: Database, intent: Intent, ordinal: int, *, message_id: int, document_id: int | None
) -> None:
    """The message of this part exists."""
    async with database.transaction("uploads.sent") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("""
                UPDATE upload_parts SET state = 'sent', message_id = :message, document_id = :document,
                    sent_at = fleet_now()
                WHERE upload_id = :upload AND ordinal = :ordinal
            """),
            {
                "upload": intent.upload_id,
                "ordinal": ordinal,
                "message": message_id,
                "document": document_id,
            },
        )


async def abandon(database: Database, intent: Intent, reason: str) -> None:
    """Give up an intent of which nothing was sent."""
    async with database.transaction("uploads.abandon") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("""
                UPDATE uploads SET state = 'abandoned', reason = :reason, ended_at = fleet_now()
                WHERE id = :upload
            """),
            {"upload": intent.upload_id, "reason": reason},
        )


async def reload(database: Database, intent: Intent) -> Intent:
    """The intent as it stands now."""
    async with database.reading() as connection:
        return await _load(connection, intent.upload_id)


async def finish(connection: AsyncConnection, intent: Intent, package_id: int) -> None:
    """Every part is sent and the package exists; inside the transaction that makes it."""
    await connection.execute(
        text("""
            UPDATE uploads SET state = 'done', package_id = :package, ended_at = fleet_now()
            WHERE id = :upload
        """),
        {"upload": intent.upload_id, "package": package_id},
    )


async def require_intent(connection: AsyncConnection, intent: Intent) -> None:
    """Begin a fenced transaction: lock the row of the intent, and stop if it has another owner by now."""
    query = text("SELECT 1 FROM uploads WHERE id = :upload AND fence = :fence AND state = 'open' FOR UPDATE")
    row = await connection.execute(query, {"upload": intent.upload_id, "fence": intent.fence})
    if row.one_or_none() is None:
        raise FenceLostError(f"upload {intent.upload_id} has another owner")


async def _load(connection: AsyncConnection, upload_id: int) -> Intent:
    row = (
        await connection.execute(
            text("""
                SELECT id, fence, content_hash, set_id, account_id, destination_id, floor_id, total_size
                FROM uploads WHERE id = :upload AND state = 'open'
            """),
            {"upload": upload_id},
        )
    ).one_or_none()
    if row is None:
        raise FenceLostError(f"upload {upload_id} has ended")
    parts = await connection.execute(
        text("""
            SELECT ordinal, file_name, byte_offset, byte_length, random_id, caption, state, message_id
            FROM upload_parts WHERE upload_id = :upload ORDER BY ordinal
        """),
        {"upload": upload_id},
    )
    return Intent(
        upload_id=row.id,
        fence=row.fence,
        content_hash=row.content_hash,
        set_id=row.set_id,
        account_id=row.account_id,
        destination_id=row.destination_id,
        floor_id=row.floor_id,
        total_size=row.total_size,
        parts=tuple(_part(part) for part in parts),
    )


def _part(row: Any) -> UploadPart:
    plan = IntentPart(
        row.ordinal, row.file_name, row.byte_offset, row.byte_length, row.random_id, row.caption
    )
    return UploadPart(plan, row.state, row.message_id)
