"""Packages whose messages are gone from the destination, and what that means for the sets behind them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.store.sets import require_claim
from worker.store.visibility import ASKED, MAY_SEE_ALL, sees_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database
    from worker.store.sets import Claim

DELETED = "it was deleted from the destination"


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """One message that a published package refers to."""

    package_id: int
    ordinal: int
    content_hash: bytes
    name: str
    message_id: int
    document_id: int | None


@dataclass(frozen=True, slots=True)
class ReadableDestination:
    """A channel that holds packages, or is to, as one account addresses it."""

    channel_id: int
    title: str
    ref: ChannelRef


_DESTINATIONS = text(f"""
    SELECT c.id, c.title, c.telegram_id, p.access_hash,
        CASE WHEN {ASKED} THEN m.visible_from END AS visible_from
    FROM channels c
    JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account AND m.can_read
    JOIN peers p ON p.account_id = :account AND p.telegram_id = c.telegram_id
    WHERE c.is_destination OR c.id IN (SELECT dest_channel_id FROM packages)
       OR c.id IN (SELECT destination_id FROM uploads)
    ORDER BY c.id
""")
_PARTS = text("""
    SELECT k.package_id, k.ordinal, p.content_hash, p.file_name, k.message_id, k.document_id
    FROM package_parts k JOIN packages p ON p.id = k.package_id
    WHERE k.dest_channel_id = :channel AND p.state = 'published'
      AND (k.package_id, k.ordinal) > (:package, :ordinal)
    ORDER BY k.package_id, k.ordinal LIMIT :limit
""")
# Messages have their numbers by channel: an earlier upload of the package may lie in another one.
_RECORDED = """
    SELECT FROM uploads u JOIN upload_parts k ON k.upload_id = u.id
    WHERE u.package_id = :package AND u.destination_id = :channel
      AND k.state = 'sent' AND k.deleted_at IS NULL AND k.message_id <> :message
"""
# Not where so much is missing that a person has to say whether it is gone.
_WITHDRAW = text(f"""
    UPDATE packages p SET state = 'withdrawn', withdrawn_at = fleet_now(), has_remains = EXISTS ({_RECORDED})
    WHERE id = :package AND state = 'published'
      AND EXISTS (SELECT FROM package_parts
          WHERE package_id = :package AND dest_channel_id = :channel AND message_id = :message)
      AND {sees_message(":channel", ":message")}
      AND (:accepted OR NOT EXISTS (
          SELECT FROM channels WHERE id = :channel AND missing_since IS NOT NULL))
    RETURNING has_remains, (
        SELECT count(*) FROM package_parts o WHERE o.package_id = :package AND o.message_id <> :message
          AND NOT EXISTS ({_RECORDED} AND k.message_id = o.message_id)) AS unrecorded
""")
# Relies on uploads_package. Whoever takes back what was sent need not look for this one.
_GONE = text("""
    UPDATE upload_parts k SET deleted_at = fleet_now() FROM uploads u
    WHERE u.package_id = :package AND u.destination_id = :channel AND k.upload_id = u.id
      AND k.message_id = :message AND k.deleted_at IS NULL
""")
# What a person said of an upload that ended as this package, or of what an earlier withdrawal left, is over.
_UNSAID = text("UPDATE uploads SET reason = NULL WHERE package_id = :package AND reason IS NOT NULL")
_DUPLICATES = text("""
    UPDATE archive_sets SET state = 'ready', package_id = NULL, reason = NULL, not_before = fleet_now(),
        updated_at = fleet_now()
    WHERE package_id = :package AND (state = 'duplicate' OR :republish)
""")
_ORIGIN = text("""
    UPDATE archive_sets SET state = 'skipped', package_id = NULL, reason = :reason, updated_at = fleet_now()
    WHERE package_id = :package
""")


async def destinations_of(
    database: Database, account_id: int, unwritten: Mapping[int, int | None] = MappingProxyType({})
) -> list[ReadableDestination]:
    """Where packages lie that this account can look at, and sees all of.

    ``unwritten`` is what it sees of some channels by a later answer than the one that was written down.
    """
    async with database.reading() as connection:
        rows = await connection.execute(_DESTINATIONS, {"account": account_id})
        return [
            ReadableDestination(row.id, row.title, ChannelRef(row.telegram_id, row.access_hash))
            for row in rows
            if unwritten.get(row.id, row.visible_from) == 0
        ]


async def parts_after(
    database: Database, channel_id: int, after: PublishedPart | None, limit: int
) -> list[PublishedPart]:
    """The next messages of published packages in this channel, in the order of their packages."""
    async with database.reading() as connection:
        values = {
            "channel": channel_id,
            "package": after.package_id if after else 0,
            "ordinal": after.ordinal if after else 0,
            "limit": limit,
        }
        return [PublishedPart(*row) for row in await connection.execute(_PARTS, values)]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A package is withdrawn; ``has_remains``: other messages of it may stand, which an upload has recorded.

    ``unrecorded`` is how many others there may be: an upload that nobody remembers has sent them.
    """

    has_remains: bool
    unrecorded: int


async def withdraw(
    database: Database,
    account_id: int,
    channel_id: int,
    part: PublishedPart,
    *,
    republish: bool,
    accepted: bool = False,
) -> Withdrawn | None:
    """The package lacks this message; None if it is published anew by now, or a person has to say so.

    The account says so that has looked; it must still be known to see where the message was.
    It counts for deduplication no more, and its duplicates are ready again. Called under the content's lock.
    """
    async with database.transaction("packages.withdraw") as connection:
        values = {
            "account": account_id,
            "package": part.package_id,
            "channel": channel_id,
            "message": part.message_id,
            "republish": republish,
            "accepted": accepted,
        }
        row = (await connection.execute(_WITHDRAW, values)).one_or_none()
        if row is None:
            return None
        await connection.execute(_GONE, values)
        await connection.execute(_UNSAID, {"package": part.package_id})
        await connection.execute(_DUPLICATES, values)
        await connection.execute(_ORIGIN, {"package": part.package_id, "reason": declined()})
        return Withdrawn(row.has_remains, row.unrecorded)


# Where no account reads, nobody sees it, and nobody could take it back. The reason of the upload that sent it
# is a person's word not to wait for it (``remains.leave_remains``).
_REMAINS = text(f"""
    SELECT c.title, bool_or({MAY_SEE_ALL}) AS is_seen
    FROM packages p JOIN channels c ON c.id = p.dest_channel_id
    JOIN memberships m ON m.channel_id = c.id AND m.can_read
    JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
    WHERE p.content_hash = :hash AND p.has_remains AND NOT EXISTS (
        SELECT FROM uploads u WHERE u.package_id = p.id AND u.destination_id = p.dest_channel_id
            AND u.reason IS NOT NULL)
    GROUP BY c.id
""")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where messages of a withdrawn package may stand; ``is_seen``: an account at work may see all of it.

    What it could not address, it cannot look at.
    """

    title: str
    is_seen: bool


async def where_remains_stand(connection: AsyncConnection, content_hash: bytes) -> Standing | None:
    """The channel in which messages of this content's withdrawn package may still stand, if there is one."""
    row = (await connection.execute(_REMAINS, {"hash": content_hash})).one_or_none()
    return None if row is None else Standing(*row)


async def is_withdrawn(connection: AsyncConnection, content_hash: bytes) -> bool:
    """Whether this content was published once and is gone from the destination."""
    query = text("SELECT 1 FROM packages WHERE content_hash = :hash AND state = 'withdrawn'")
    return (await connection.execute(query, {"hash": content_hash})).one_or_none() is not None


async def decline(database: Database, claim: Claim) -> None:
    """Leave the set alone: a person deleted its content, and nobody asked for it again."""
    async with database.transaction("sets.decline") as connection:
        await require_claim(connection, claim)
        await connection.execute(
            text("""
                UPDATE archive_sets SET state = 'skipped', reason = :reason, claimed_by = NULL,
                    claim_worker_id = NULL, claimed_at = NULL, updated_at = fleet_now() WHERE id = :set
            """),
            {"set": claim.set_id, "reason": declined()},
        )


def declined() -> str:
    """Why a set is not published again, and what to do to have it so."""
    return f"{DELETED} — set fleet.republish_deleted and run: worker sets retry"
