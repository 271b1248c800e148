"""Intents that outlived the process which made them: whose they are, and how they change hands or end.

Each change is fenced: whoever owned the intent before can write nothing after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import FenceLostError
from worker.store.protection import is_forbidden
from worker.store.sets import fail_claim, wake_waiting
from worker.store.uploads import insert_parts, load, require_intent
from worker.store.visibility import sees_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from worker.store.database import Database
    from worker.store.sets import Claim
    from worker.store.uploads import Intent, IntentPart


@dataclass(frozen=True, slots=True)
class Begun:
    """An upload that was begun and not ended."""

    upload_id: int
    content_hash: bytes
    account_id: int
    set_id: int
    set_name: str
    part_count: int
    sent_count: int


# One that was given up before anything was sent may have no parts any more.
BEGUN = """
    SELECT u.id, u.content_hash, u.account_id, s.id, s.name, count(p.ordinal), count(p.message_id)
    FROM uploads u JOIN archive_sets s ON s.id = u.set_id LEFT JOIN upload_parts p ON p.upload_id = u.id
    WHERE u.state = 'open' AND {which} GROUP BY u.id, s.id ORDER BY u.id
"""
# Both rely on uploads_open_by_account.
_OF_ACCOUNT = text(
    BEGUN.format(
        which="""u.account_id = :account
        AND (:at_once OR s.not_before <= fleet_now() OR u.reason IS NOT NULL)
        AND (s.state = 'ready' OR :claimed)"""
    )
)
_SEES_DESTINATION = """EXISTS (SELECT FROM memberships m WHERE m.account_id = :account AND m.can_read
                    AND m.channel_id = u.destination_id AND {posting}
                    AND (m.visible_from <= u.floor_id + 1
                         OR m.channel_id = ANY(CAST(:whole AS integer[]))))"""
# Whoever may post there may take back what stands there; without such an account it is only looked for.
_POSTS_OR_NOBODY_DOES = """(m.can_post OR NOT EXISTS (
                        SELECT FROM memberships o JOIN accounts oa ON oa.id = o.account_id
                        WHERE o.channel_id = u.destination_id AND o.can_read AND o.can_post
                          AND o.visible_from <= u.floor_id + 1 AND oa.state = 'ready'
                          AND oa.id <> u.account_id))"""
# The bytes that are still missing must be within this account's reach: in the same set, or in a copy of it.
# An upload that was given up needs none of them, and is ended for an account that is shut out as well.
_STRANDED = text(
    BEGUN.format(
        which=f"""u.account_id <> :account AND s.state = 'ready'
        AND (u.account_id IN (SELECT id FROM accounts WHERE id = ANY(CAST(:asked AS integer[]))
                              OR state IN ('needs_login', 'disabled', 'banned', 'frozen')
                              OR state <> 'ready' AND u.reason IS NOT NULL)
             OR u.reason IS NOT NULL AND NOT EXISTS (
                 SELECT FROM memberships w WHERE w.account_id = u.account_id
                   AND w.channel_id = u.destination_id AND w.can_read
                   AND coalesce(w.visible_from, 0) <= u.floor_id + 1))
        AND (u.reason IS NOT NULL AND {_SEES_DESTINATION.format(posting=_POSTS_OR_NOBODY_DOES)}
             OR {_SEES_DESTINATION.format(posting="m.can_post")})
        AND (u.reason IS NOT NULL
             OR NOT EXISTS (SELECT FROM upload_parts q WHERE q.upload_id = u.id AND q.state <> 'sent')
             OR EXISTS (SELECT FROM archive_sets c JOIN memberships m ON m.channel_id = c.channel_id
                        JOIN channels h ON h.id = c.channel_id
                        WHERE m.account_id = :account AND m.can_read AND {sees_set("c.id")}
                        AND (c.id = s.id OR c.content_hash = u.content_hash AND c.state = 'ready'
                             AND c.part_count = s.part_count AND NOT {is_forbidden("h", "c.id")})))"""
    )
)


async def count_begun(database: Database, account_id: int) -> int:
    """How many uploads of this account have begun and not ended."""
    async with database.reading() as connection:
        query = text("SELECT count(*) FROM uploads WHERE account_id = :account AND state = 'open'")
        return int((await connection.execute(query, {"account": account_id})).scalar_one())


async def begun_by(
    database: Database, account_id: int, *, at_once: bool = False, claimed: bool = False
) -> list[Begun]:
    """What this account may go on with, oldest first.

    ``at_once`` includes what was told to wait, ``claimed`` what somebody works on or died working on.
    """
    values = {"account": account_id, "at_once": at_once, "claimed": claimed}
    async with database.reading() as connection:
        rows = await connection.execute(_OF_ACCOUNT, values)
        return [Begun(*row) for row in rows]


async def stranded_for(
    database: Database, account_id: int, asked: Collection[int] = (), *, whole: Collection[int] = ()
) -> list[Begun]:
    """What others began, cannot end themselves (or a person says so), and this account could end.

    ``whole`` are channels that it sees all of, beyond those that are written down as such.
    """
    async with database.reading() as connection:
        values = {"account": account_id, "asked": list(asked), "whole": list(whole)}
        rows = await connection.execute(_STRANDED, values)
        return [Begun(*row) for row in rows]


async def own(database: Database, upload_id: int, account_id: int) -> Intent:
    """Become the owner of this account's intent: its fence grows, and the owner before can write no more."""
    async with database.transaction("uploads.own") as connection:
        result = await connection.execute(
            text("""
                UPDATE uploads SET fence = fence + 1
                WHERE id = :upload AND state = 'open' AND account_id = :account
            """),
            {"upload": upload_id, "account": account_id},
        )
        if not result.rowcount:
            raise FenceLostError(f"upload {upload_id} has ended or changed hands")
        return await load(connection, upload_id)


async def replan(database: Database, intent: Intent, parts: Iterable[IntentPart]) -> Intent:
    """Put other parts in the place of those that nothing was ever sent of."""
    async with database.transaction("uploads.replan") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("DELETE FROM upload_parts WHERE upload_id = :upload AND state = 'planned'"),
            {"upload": intent.upload_id},
        )
        await insert_parts(connection, intent.upload_id, parts)
        return await load(connection, intent.upload_id)


async def rewrite(
    database: Database, intent: Intent, account_id: int, set_id: int, parts: Iterable[IntentPart]
) -> Intent:
    """Hand the intent to another account, with parts of its own for whatever has no message."""
    async with database.transaction("uploads.rewrite") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("DELETE FROM upload_parts WHERE upload_id = :upload AND state <> 'sent'"),
            {"upload": intent.upload_id},
        )
        await insert_parts(connection, intent.upload_id, parts)
        await connection.execute(
            text("""
                UPDATE uploads SET fence = fence + 1, account_id = :account, set_id = :set WHERE id = :upload
            """),
            {"upload": intent.upload_id, "account": account_id, "set": set_id},
        )
        await connection.execute(
            text("UPDATE archive_sets SET not_before = fleet_now(), reason = NULL WHERE id = :set"),
            {"set": set_id},
        )
        return await load(connection, intent.upload_id)


async def move_to_copy(database: Database, intent: Intent, set_id: int) -> None:
    """Let the missing bytes come from another set of the same content."""
    async with database.transaction("uploads.move") as connection:
        await require_intent(connection, intent)
        values = {"upload": intent.upload_id, "set": set_id}
        await connection.execute(text("UPDATE uploads SET set_id = :set WHERE id = :upload"), values)
        await connection.execute(
            text("UPDATE archive_sets SET not_before = fleet_now(), reason = NULL WHERE id = :set"), values
        )


async def give_up(database: Database, intent: Intent, reason: str) -> Intent:
    """Decide for good that this intent ends without a package. What it sent is removed before it ends."""
    async with database.transaction("uploads.give_up") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("UPDATE uploads SET reason = coalesce(reason, :reason) WHERE id = :upload"),
            {"upload": intent.upload_id, "reason": reason},
        )
        return await load(connection, intent.upload_id)


async def hand_over(database: Database, intent: Intent, account_id: int) -> None:
    """Leave an intent that is given up to another account, with all its parts: none is sent any more."""
    async with database.transaction("uploads.hand_over") as connection:
        await require_intent(connection, intent)
        query = text("""
            UPDATE uploads SET fence = fence + 1, account_id = :account
            WHERE id = :upload AND reason IS NOT NULL
        """)
        await connection.execute(query, {"upload": intent.upload_id, "account": account_id})


async def abandon(database: Database, intent: Intent, claim: Claim) -> None:
    """End an intent that was given up; its set has failed for the same reason."""
    assert intent.reason is not None, "it is decided, and written down, before it is done"
    async with database.transaction("uploads.abandon") as connection:
        await require_intent(connection, intent)
        await connection.execute(
            text("UPDATE uploads SET state = 'abandoned', ended_at = fleet_now() WHERE id = :upload"),
            {"upload": intent.upload_id},
        )
        await fail_claim(connection, claim, intent.reason)
        await wake_waiting(connection, intent.content_hash)
