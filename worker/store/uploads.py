"""Upload intents: what is about to be sent, written before it is, so that a crash can be put right.

An intent carries, for every part, the ``random_id`` that Telegram deduplicates by. It is made once and never
made anew while the fate of its part is unknown. What happens to an intent that outlived its process stands in
``open_intents``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from worker.errors import BusyError, FenceLostError
from worker.store.decisions import decide_alone
from worker.store.missing_packages import require_whole
from worker.store.sets import require_claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    document_id: int | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """An open upload. Every write for it carries the fence. ``reason`` says why it is being given up."""

    upload_id: int
    fence: int
    content_hash: bytes
    set_id: int
    account_id: int
    destination_id: int
    floor_id: int
    total_size: int
    reason: str | None
    parts: tuple[UploadPart, ...]

    @property
    def is_sent(self) -> bool:
        """Whether every part has its message."""
        return all(part.state == "sent" for part in self.parts)


@dataclass(frozen=True, slots=True)
class LiveIntent:
    """That somebody has begun to publish a content, how long ago, and whether that account does not work."""

    upload_id: int
    set_id: int
    account_id: int
    age_seconds: float
    is_stuck: bool


async def live_intent_for(connection: AsyncConnection, content_hash: bytes) -> LiveIntent | None:
    """The open upload of this content, if there is one. Relies on uploads_one_live_intent."""
    query = text("""
        SELECT u.id, u.set_id, u.account_id, extract(epoch FROM fleet_now() - u.created_at)::float8,
               a.state <> 'ready'
        FROM uploads u JOIN accounts a ON a.id = u.account_id
        WHERE u.content_hash = :hash AND u.state = 'open'
    """)
    row = (await connection.execute(query, {"hash": content_hash})).one_or_none()
    return None if row is None else LiveIntent(*row)


_INSERT = text("""
    INSERT INTO uploads (content_hash, set_id, account_id, destination_id, floor_id, total_size)
    VALUES (:hash, :set, :account, :destination, :floor, :total) RETURNING id
""")
_IS_PUBLISHED = text("SELECT 1 FROM packages WHERE content_hash = :hash AND state = 'published'")
_LOOK_AGAIN_SECONDS = 1.0
_INSERT_PART = text("""
    INSERT INTO upload_parts (upload_id, ordinal, file_name, byte_offset, byte_length, random_id, caption)
    VALUES (:upload, :ordinal, :name, :offset, :length, :random_id, :caption)
""")


async def create_intent(
    database: Database,
    claim: Claim,
    *,
    account_id: int,
    destination_id: int,
    floor_id: int,
    content_hash: bytes,
    parts: Sequence[IntentPart],
) -> Intent:
    """Commit what is about to be sent; ``BusyError`` if another account has begun or published it meanwhile.

    The content's lock may have been lost and regained since the caller looked, with somebody else's whole
    upload in between.
    """
    values = {
        "hash": content_hash,
        "set": claim.set_id,
        "account": account_id,
        "destination": destination_id,
        "floor": floor_id,
        "total": claim.total_size,
    }
    async with database.transaction("uploads.intent") as connection:
        await require_claim(connection, claim)
        await require_whole(connection, destination_id)
        await decide_alone(connection, content_hash)
        try:
            upload_id = (await connection.execute(_INSERT, values)).scalar_one()
        except IntegrityError as error:
            raise BusyError("another account has begun to publish it", seconds=_LOOK_AGAIN_SECONDS) from error
        # After the insert, which waits for whoever is just ending an upload of the same content.
        if (await connection.execute(_IS_PUBLISHED, {"hash": content_hash})).one_or_none() is not None:
            raise BusyError("another account has just published it", seconds=_LOOK_AGAIN_SECONDS)
        await insert_parts(connection, upload_id, parts)
        return await load(connection, upload_id)


async def insert_parts(connection: AsyncConnection, upload_id: int, parts: Iterable[IntentPart]) -> None:
    """Write down the parts of an intent, inside its transaction."""
    for part in parts:
        values = {
            "upload": upload_id,
            "ordinal": part.ordinal,
            "name": part.file_name,
            "offset": part.offset,
            "length": part.length,
            "random_id": part.random_id,
            "caption": part.caption,
        }
        await connection.execute(_INSERT_PART, values)


async def mark_sending(
    database: Database, intent: Intent, ordinal: int, document_id: int | None = None
) -> bool:
    """From here on the fate of this part may be unknown; False if it was so before.

    Every message of an archive passes here: nothing is sent to a destination that is held up. ``document_id``
    is what its message will show, by which that is known from everybody else's.
    """
    async with database.transaction("uploads.sending") as connection:
        await require_intent(connection, intent)
        await require_whole(connection, intent.destination_id)
        await connection.execute(
            text("""
                UPDATE upload_parts SET document_id = coalesce(:document, document_id)
                WHERE upload_id = :upload AND ordinal = :ordinal
            """),
            {"upload": intent.upload_id, "ordinal": ordinal, "document": document_id},
        )
        return await _change_state(connection, intent, ordinal, "planned", "sending")


async def mark_unsent(database: Database, intent: Intent, ordinal: int) -> None:
    """No message of this part can exist: Telegram was not asked for one, said to wait, or lacked bytes."""
    async with database.transaction("uploads.unsent") as connection:
        await require_intent(connection, intent)
        await _change_state(connection, intent, ordinal, "sending", "planned")


async def _change_state(
    connection: AsyncConnection, intent: Intent, ordinal: int, old: str, new: str
) -> bool:
    query = text("""
        UPDATE upload_parts SET state = :new WHERE upload_id = :upload AND ordinal = :ordinal AND state = :old
    """)
    values = {"upload": intent.upload_id, "ordinal": ordinal, "old": old, "new": new}
    return bool((await connection.execute(query, values)).rowcount)


async def mark_sent(
    database: Database, intent: Intent, ordinal: int, *, message_id: int, document_id: int | None
) -> None:
    """The message of this part exists."""
    values = {
        "upload": intent.upload_id,
        "ordinal": ordinal,
        "message": message_id,
        "document": document_id,
    }
    async with database.transaction("uploads.sent") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("""
                UPDATE upload_parts SET state = 'sent', message_id = :message, document_id = :document,
                    sent_at = fleet_now()
                WHERE upload_id = :upload AND ordinal = :ordinal
            """),
            values,
        )


async def find_committed(database: Database, claim: Claim, parts: Sequence[IntentPart]) -> Intent | None:
    """The intent with these parts, if the transaction whose answer was lost has made it."""
    async with database.reading() as connection:
        query = text("""
            SELECT u.id FROM uploads u JOIN upload_parts p ON p.upload_id = u.id
            WHERE u.set_id = :set AND u.state = 'open' AND p.random_id = :random_id
        """)
        values = {"set": claim.set_id, "random_id": parts[0].random_id}
        upload_id = (await connection.execute(query, values)).scalar_one_or_none()
        return None if upload_id is None else await load(connection, upload_id)


async def reload(database: Database, intent: Intent) -> Intent:
    """The intent as it stands."""
    async with database.reading() as connection:
        return await load(connection, intent.upload_id)


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


async def load(connection: AsyncConnection, upload_id: int, state: str = "open") -> Intent:
    """An intent with its parts, an open one unless told otherwise; ``FenceLostError`` if it is not that."""
    row = (
        await connection.execute(
            text("""
                SELECT id, fence, content_hash, set_id, account_id, destination_id, floor_id, total_size,
                    reason
                FROM uploads WHERE id = :upload AND state = :state
            """),
            {"upload": upload_id, "state": state},
        )
    ).one_or_none()
    if row is None:
        raise FenceLostError(f"upload {upload_id} is not {state} any more")
    parts = await connection.execute(
        text("""
            SELECT ordinal, file_name, byte_offset, byte_length, random_id, caption, state, message_id,
                document_id
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
        reason=row.reason,
        parts=tuple(_part(part) for part in parts),
    )


def _part(row: Any) -> UploadPart:
    plan = IntentPart(
        row.ordinal, row.file_name, row.byte_offset, row.byte_length, row.random_id, row.caption
    )
    return UploadPart(plan, row.state, row.message_id, row.document_id)
