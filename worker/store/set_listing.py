"""Sets one by one, with what it takes to say why each is where it is; and what a person may do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import UNCHECKED
from worker.errors import UserError
from worker.store.notifications import FLOW, RETRY

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class ListedSet:
    """A set, and the circumstances that may hold it up.

    ``wait_seconds`` is how long it may not be claimed yet, ``readers`` how many logged-in accounts read its
    channel, ``premium_readers`` how many of them are Premium, ``sender`` who has begun to publish it, and
    ``sender_state`` how that account stands.
    """

    id: int
    name: str
    channel: str
    format: str
    state: str
    reason: str | None
    part_count: int
    total_size: int
    attempts: int
    package_id: int | None
    posted_at: datetime
    not_before: datetime
    wait_seconds: float
    is_enabled: bool
    readers: int
    worker: str | None
    sender: str | None
    premium_readers: int
    sender_state: str | None


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A file of a set, where it was posted."""

    part_number: int
    message_id: int
    document_id: int
    file_name: str
    size: int


_SETS = """
    SELECT s.id, s.name, c.title, s.format, s.state, s.reason, s.part_count, s.total_size, s.attempts,
        s.package_id, s.posted_at, s.not_before,
        CAST(greatest(0, extract(epoch FROM s.not_before - fleet_now())) AS double precision),
        c.is_enabled,
        CASE WHEN s.state = 'ready' THEN
            (SELECT count(*) FROM memberships m JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
             WHERE m.channel_id = s.channel_id AND m.can_read) ELSE 1 END,
        (SELECT coalesce(nullif(a.display_name, ''), 'account ' || a.id) || ' on ' || w.host
         FROM accounts a, workers w WHERE a.id = s.claimed_by AND w.id = s.claim_worker_id),
        (SELECT coalesce(nullif(a.display_name, ''), 'account ' || a.id) FROM uploads u
         JOIN accounts a ON a.id = u.account_id WHERE u.set_id = s.id AND u.state = 'open'),
        CASE WHEN s.state = 'ready' THEN
            (SELECT count(*) FROM memberships m JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
             WHERE m.channel_id = s.channel_id AND m.can_read AND a.is_premium) ELSE 0 END,
        (SELECT a.state FROM uploads u JOIN accounts a ON a.id = u.account_id
         WHERE u.set_id = s.id AND u.state = 'open')
    FROM archive_sets s JOIN channels c ON c.id = s.channel_id
"""
_ONE = text(f"{_SETS} WHERE s.id = :id")
_PARTS = text("""
    SELECT part_number, message_id, document_id, file_name, size FROM source_files
    WHERE set_id = :id ORDER BY part_number
""")


async def list_sets(
    database: Database,
    *,
    limit: int,
    states: tuple[str, ...] = (),
    channel_id: int | None = None,
    before: int | None = None,
) -> list[ListedSet]:
    """The newest sets, or those before a number. Relies on the key and archive_sets_state."""
    conditions = ["true"]
    values: dict[str, object] = {"limit": limit}
    if states:
        conditions.append("s.state = ANY(:states)")
        values["states"] = list(states)
    if channel_id is not None:
        conditions.append("s.channel_id = :channel")
        values["channel"] = channel_id
    if before is not None:
        conditions.append("s.id < :before")
        values["before"] = before
    query = text(f"{_SETS} WHERE {' AND '.join(conditions)} ORDER BY s.id DESC LIMIT :limit")
    async with database.reading() as connection:
        return [ListedSet(*row) for row in await connection.execute(query, values)]


async def show_set(database: Database, set_id: int) -> tuple[ListedSet, list[ListedPart]]:
    """One set and its files."""
    async with database.reading() as connection:
        found = await _listed(connection, set_id)
        return found, [ListedPart(*row) for row in await connection.execute(_PARTS, {"id": set_id})]


# What a person left out may have been taken out before all of it was there, and what failed without ever
# having been fetched may have failed at its proof: the bytes are asked again.
_RETRY = text("""
    UPDATE archive_sets SET attempts = 0, not_before = fleet_now(), updated_at = fleet_now(),
        fence = fence + 1,
        state = CASE WHEN state = 'collecting' OR asked THEN 'collecting' ELSE 'ready' END,
        to_prove = state = 'collecting' OR asked,
        reason = CASE WHEN state = 'collecting' OR asked THEN :unchecked END
    FROM (SELECT id AS known, family IS NOT NULL AND (
              state = 'skipped' OR state = 'failed' AND content_hash IS NULL) AS asked
          FROM archive_sets WHERE id = :id) each
    WHERE id = known
""")
_SKIP = text("""
    UPDATE archive_sets SET state = 'skipped', reason = :reason, to_prove = false, fence = fence + 1,
        updated_at = fleet_now()
    WHERE id = :id
""")
_WAKE = text("SELECT pg_notify(:channel, :what)")
_CAN_BE_TRIED = text("""
    SELECT state IN ('failed', 'ready', 'skipped') OR to_prove AS moves,
        EXISTS (SELECT FROM source_files f WHERE f.set_id = archive_sets.id) AS has_files
    FROM archive_sets WHERE id = :id
""")


async def retry_set(database: Database, set_id: int) -> ListedSet:
    """Let a set that failed, was left out or waits be tried at once, with all its attempts.

    Returns it as it was before.
    """
    async with database.transaction("sets.retry") as connection:
        before = await _listed(connection, set_id, lock=True)
        facts = (await connection.execute(_CAN_BE_TRIED, {"id": set_id})).one()
        if not facts.moves:
            what = before.reason if before.state == "collecting" else before.state
            raise UserError(
                f"set {set_id} cannot be tried again: {what}", remedy=f"see: worker sets show {set_id}"
            )
        if not facts.has_files:
            raise UserError(f"set {set_id} has no files any more", remedy="its source has to post them again")
        await connection.execute(_RETRY, {"id": set_id, "unchecked": UNCHECKED})
        await connection.execute(_WAKE, {"channel": FLOW, "what": RETRY})
        return before


async def skip_set(database: Database, set_id: int, reason: str) -> ListedSet:
    """Leave a set out until a person wants it again. Returns it as it was before."""
    async with database.transaction("sets.skip") as connection:
        before = await _listed(connection, set_id, lock=True)
        if before.sender is not None:
            raise UserError(
                f"{before.sender} has begun to publish set {set_id}",
                remedy=f"let it end: worker recover; or end it: worker recover --give-up {set_id}",
            )
        if before.state not in ("collecting", "ready", "failed"):
            raise UserError(f"set {set_id} is {before.state}: there is nothing to leave out")
        await connection.execute(_SKIP, {"id": set_id, "reason": reason})
        return before


async def _listed(connection: AsyncConnection, set_id: int, *, lock: bool = False) -> ListedSet:
    if lock:
        query = text("SELECT 1 FROM archive_sets WHERE id = :id FOR UPDATE")
        await connection.execute(query, {"id": set_id})
    row = (await connection.execute(_ONE, {"id": set_id})).one_or_none()
    if row is None:
        raise UserError(f"there is no set {set_id}", remedy="see: worker sets list")
    return ListedSet(*row)
