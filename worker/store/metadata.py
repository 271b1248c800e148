"""Packages whose second phase is still to come, and what kept it from coming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class PendingPackage:
    """A stub whose metadata is still to come."""

    package_id: int
    content_hash: bytes


@dataclass(slots=True)
class Attempt:
    """One attempt at a package's listing, counted when it begins or, as its first one, with its stub.

    ``begun_at`` tells it from every other; the one of the stub has the moment of its publishing.
    """

    package_id: int
    is_counted: bool = False
    begun_at: datetime | None = None


# Relies on packages_pending. A stub of another account whose run goes on is being indexed there, or will be
# in its next round: reading the archive a second time beside it would help nobody.
_PENDING = text("""
    SELECT p.id, p.content_hash FROM packages p
    JOIN memberships m ON m.channel_id = p.dest_channel_id AND m.account_id = :account AND m.can_read
        AND (coalesce(m.visible_from, 0) = 0 OR p.dest_message_id >= m.visible_from)
    WHERE p.metadata = 'pending' AND p.state = 'published' AND p.metadata_not_before <= fleet_now()
      AND NOT EXISTS (SELECT FROM runs r WHERE r.id = p.ingestion_run_id AND r.ended_at IS NULL
                      AND r.account_id <> :account)
    ORDER BY p.id LIMIT :limit
""")
_FAILURE = text("""
    UPDATE packages SET metadata_reason = :reason,
        metadata = CASE WHEN metadata_attempts >= :most THEN 'failed' ELSE metadata END,
        metadata_not_before = fleet_now()
            + least(:cap, :base * power(2, greatest(0, metadata_attempts - 1))) * interval '1 second'
    WHERE id = :id AND metadata = 'pending'
""")
_LEAVE_SET = text("""
    UPDATE archive_sets SET state = 'indexed', updated_at = fleet_now()
    WHERE state = 'published'
      AND package_id IN (SELECT id FROM packages WHERE id = :id AND metadata = 'failed')
""")
# Counted before the work: an archive that ends the process with its listing does not end every one. The
# moment tells the attempt from all others.
_BEGIN = text("""
    UPDATE packages SET
        metadata_reason = CASE WHEN metadata_attempts >= :most
            THEN 'its listing was begun ' || metadata_attempts || ' times and never ended'
            ELSE metadata_reason END,
        metadata = CASE WHEN metadata_attempts >= :most THEN 'failed' ELSE metadata END,
        metadata_attempts = least(:most, metadata_attempts + 1), metadata_not_before = fleet_now()
    WHERE id = :id AND metadata = 'pending' RETURNING metadata, metadata_not_before
""")
_UNCOUNT = text("""
    UPDATE packages SET metadata_attempts = greatest(0, metadata_attempts - 1),
        metadata_not_before = fleet_now()
    WHERE id = :id AND metadata = 'pending' AND metadata_not_before = coalesce(:begun_at, published_at)
""")
_AGAIN = text("""
    UPDATE packages SET metadata = 'pending', metadata_attempts = 0, metadata_reason = NULL,
        metadata_not_before = fleet_now()
    WHERE id = :id AND state = 'published'
""")


async def pending_of(database: Database, account_id: int, *, limit: int) -> list[PendingPackage]:
    """Stubs without metadata that lie where this account can read them, oldest first."""
    async with database.reading() as connection:
        values = {"account": account_id, "limit": limit}
        return [PendingPackage(*row) for row in await connection.execute(_PENDING, values)]


async def begin_listing(database: Database, attempt: Attempt, *, give_up_after: int) -> bool:
    """Count the attempt that is about to be made; False if there were enough, none of which ended."""
    async with database.transaction("packages.begin_listing") as connection:
        values = {"id": attempt.package_id, "most": give_up_after}
        row = (await connection.execute(_BEGIN, values)).one_or_none()
        await connection.execute(_LEAVE_SET, values)
        if row is None or row.metadata != "pending":
            return False
        # Before the commit: if that gets no answer, the attempt may have been counted.
        attempt.is_counted, attempt.begun_at = True, row.metadata_not_before
        return True


async def uncount_listing(database: Database, attempt: Attempt) -> None:
    """The attempt ended for a reason that the archive is not to blame for; to say so twice does no harm."""
    async with database.transaction("packages.uncount_listing") as connection:
        await connection.execute(_UNCOUNT, {"id": attempt.package_id, "begun_at": attempt.begun_at})


async def note_failure(
    database: Database, package_id: int, reason: str, *, give_up_after: int, base_secs: float, cap_secs: float
) -> None:
    """The listing did not come about: try again later, and after so many times leave the package marked."""
    async with database.transaction("packages.failure") as connection:
        values = {
            "id": package_id,
            "reason": reason,
            "most": give_up_after,
            "base": base_secs,
            "cap": cap_secs,
        }
        await connection.execute(_FAILURE, values)
        await connection.execute(_LEAVE_SET, {"id": package_id})


async def index_again(database: Database, package_id: int) -> bool:
    """Let the second phase be tried anew; False if there is no such published package."""
    async with database.transaction("packages.index_again") as connection:
        return bool((await connection.execute(_AGAIN, {"id": package_id})).rowcount)
