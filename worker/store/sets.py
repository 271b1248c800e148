"""Archive sets: found, claimed, finished, handed back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from worker.errors import BusyError, CommitUnknownError, FenceLostError
from worker.store.collecting import ask_again, lock_channel
from worker.store.disk import note_written
from worker.store.leases import require_owner
from worker.store.unheard_claims import UnheardClaimError

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database
    from worker.store.leases import Tenure


@dataclass(frozen=True, slots=True)
class SourcePart:
    """One file of a set, where it was posted."""

    source_file_id: int
    message_id: int
    document_id: int
    file_name: str
    size: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A set that one account works on. Every write for it carries the fence.

    ``copy_mode``: its source's files may be sent on as they are, without uploading them. ``is_unproven``: it
    is published although nothing can prove it whole.
    """

    set_id: int
    fence: int
    channel_id: int
    source_telegram_id: int
    name: str
    format: str
    total_size: int
    attempts: int
    waits: int
    content_hash: bytes | None
    parts: tuple[SourcePart, ...]
    copy_mode: bool = False
    is_unproven: bool = False


CLAIM = text("""
    UPDATE archive_sets s SET state = 'claimed', claimed_by = :account, claim_worker_id = :worker,
        fence = s.fence + 1, claimed_at = fleet_now(), updated_at = fleet_now(), turned_away_by = NULL
    FROM channels c WHERE c.id = s.channel_id AND s.id = :set AND s.state = 'ready'
    RETURNING s.id, s.fence, s.channel_id, c.telegram_id, s.name, s.format, s.total_size, s.attempts, s.waits,
        s.content_hash, c.copy_mode, s.is_unproven
""")


async def claim_set(database: Database, account_id: int, worker_id: UUID, set_id: int) -> Claim | None:
    """This one set, to finish what was begun with it; None if somebody else works on it."""
    claim: Claim | None = None
    try:
        async with database.transaction("sets.reclaim") as connection:
            values = {"account": account_id, "worker": worker_id, "set": set_id}
            row = (await connection.execute(CLAIM, values)).one_or_none()
            claim = None if row is None else await claim_of(connection, row)
    except IntegrityError:
        return None
    except CommitUnknownError as error:
        if claim is None:
            raise
        raise UnheardClaimError(error.what, claim) from error
    return claim


_PARTS = text("""
    SELECT id, message_id, document_id, file_name, size FROM source_files
    WHERE set_id = :set ORDER BY part_number
""")


async def parts_of(database: Database, set_id: int) -> list[SourcePart]:
    """The files of a set in order."""
    async with database.reading() as connection:
        return [SourcePart(*part) for part in await connection.execute(_PARTS, {"set": set_id})]


async def claim_of(connection: AsyncConnection, row: Row[Any]) -> Claim:
    """The claim that ``CLAIM`` has just made, with its files."""
    parts = await connection.execute(_PARTS, {"set": row.id})
    return Claim(
        set_id=row.id,
        fence=row.fence,
        channel_id=row.channel_id,
        source_telegram_id=row.telegram_id,
        name=row.name,
        format=row.format,
        total_size=row.total_size,
        attempts=row.attempts,
        waits=row.waits,
        content_hash=row.content_hash,
        parts=tuple(SourcePart(*part) for part in parts),
        copy_mode=row.copy_mode,
        is_unproven=row.is_unproven,
    )


async def require_claim(connection: AsyncConnection, claim: Claim) -> None:
    """Begin a fenced transaction: lock the set's row, and stop if it has another owner by now."""
    query = text(
        "SELECT 1 FROM archive_sets WHERE id = :set AND fence = :fence AND state = 'claimed' FOR UPDATE"
    )
    row = await connection.execute(query, {"set": claim.set_id, "fence": claim.fence})
    if row.one_or_none() is None:
        raise FenceLostError(f"set {claim.set_id} has another owner")


async def save_hashes(
    database: Database, claim: Claim, content_hash: bytes, part_hashes: list[bytes]
) -> None:
    """What the bytes hash to, as a whole and part by part."""
    async with database.transaction("sets.hashes") as connection:
        await require_claim(connection, claim)
        await connection.execute(
            text("UPDATE archive_sets SET content_hash = :hash WHERE id = :set"),
            {"hash": content_hash, "set": claim.set_id},
        )
        for part, digest in zip(claim.parts, part_hashes, strict=True):
            await connection.execute(
                text("UPDATE source_files SET sha256 = :hash WHERE id = :file"),
                {"hash": digest, "file": part.source_file_id},
            )
        await note_written(connection, claim)


_MOST_UNENDED = 8
_UNCLAIM = (
    "unended = 0, claimed_by = NULL, claim_worker_id = NULL, claimed_at = NULL, updated_at = fleet_now()"
)
_TO_PACKAGE = text(f"""
    UPDATE archive_sets SET state = :state, package_id = :package, reason = NULL, {_UNCLAIM} WHERE id = :set
""")
_TO_WAITING = text(f"""
    UPDATE archive_sets SET state = CASE WHEN EXISTS
            (SELECT FROM uploads u WHERE u.set_id = archive_sets.id AND u.state = 'open')
        THEN 'ready' ELSE :state END, reason = :reason, attempts = attempts + :counted,
        waits = :waits,
        not_before = fleet_now() + :wait * interval '1 second', {_UNCLAIM}
    WHERE id = :set
""")
_WANTING = text("UPDATE archive_sets SET found_wanting = true WHERE id = :set RETURNING family")
# A worker that fell silent may have ended of the set: so often in a row, the set is not taken again. The
# claim itself, with its worker, was written before the work. One that said farewell has only stopped. Nobody
# judges its own silence; and whoever was without the database cannot tell that of others from an outage.
_SILENT = """(w.id <> CAST(:judge AS uuid)
    AND w.heartbeat_at < coalesce(w.stopped_at, fleet_now()) - interval '15 seconds')"""
# Longer than a command takes to fail: who waits for an answer still is heard so soon after an outage.
_HEARD_AGAIN_SECONDS = 45.0
# Not heard since the server was started, which was lately: it may be about to speak, and whoever judges may
# never have noticed the outage. Its claim waits: released uncounted, a set that ends worker and server would
# do so for ever. A start in the future is a clock that stepped back.
_MAY_SPEAK = f"""(w.heartbeat_at < pg_postmaster_start_time()
    AND fleet_now() BETWEEN pg_postmaster_start_time()
        AND pg_postmaster_start_time() + {_HEARD_AGAIN_SECONDS} * interval '1 second')"""
_LEFT = f"{_SILENT} AND s.unended + 1 >= {_MOST_UNENDED} AND NOT EXISTS (\
SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open')"
_RELEASE = f"""
    UPDATE archive_sets s SET state = CASE WHEN {_LEFT} THEN 'failed' ELSE 'ready' END,
        reason = CASE WHEN {_LEFT}
            THEN '{_MOST_UNENDED} workers ended while they worked on it' ELSE s.reason END,
        unended = CASE WHEN {_SILENT} THEN s.unended + 1 ELSE s.unended END,
        claimed_by = NULL, claim_worker_id = NULL, claimed_at = NULL, updated_at = fleet_now()
    FROM workers w WHERE s.state = 'claimed' AND w.id = s.claim_worker_id
"""
_RELEASE_DEAD = text(f"""
    {_RELEASE} AND w.stopped_at IS NOT NULL AND NOT coalesce({_SILENT} AND {_MAY_SPEAK}, false)
""")
_RELEASE_OWN = text(f"{_RELEASE} AND s.claimed_by = :account")


_LOOK_AGAIN_SECONDS = 1.0


async def mark_duplicate(database: Database, claim: Claim, package_id: int) -> None:
    """These bytes are published already, as this package; ``BusyError`` if it is withdrawn by now."""
    async with database.transaction("sets.duplicate") as connection:
        await require_claim(connection, claim)
        query = text("SELECT 1 FROM packages WHERE id = :package AND state = 'published' FOR SHARE")
        if (await connection.execute(query, {"package": package_id})).one_or_none() is None:
            raise BusyError(f"package {package_id} is being withdrawn", seconds=_LOOK_AGAIN_SECONDS)
        values = {"state": "duplicate", "package": package_id, "set": claim.set_id}
        await connection.execute(_TO_PACKAGE, values)


async def mark_published(connection: AsyncConnection, claim: Claim, package_id: int) -> None:
    """The set's package exists; inside the transaction that makes it."""
    await require_claim(connection, claim)
    values = {"state": "published", "package": package_id, "set": claim.set_id}
    await connection.execute(_TO_PACKAGE, values)


async def hand_back(
    database: Database,
    claim: Claim,
    *,
    reason: str | None,
    wait_seconds: float,
    counts: bool = False,
    give_up: bool = False,
    waits: int = 0,
    wanting: bool = False,
) -> None:
    """End the claim without a result.

    ``counts`` says whether it was an attempt, ``give_up`` that it was the last one, ``waits`` how many times
    in a row it was told to wait for others, ``wanting`` that its bytes do not make one archive.
    """
    async with database.transaction("sets.hand_back") as connection:
        if wanting:
            # Files that are settled at this moment either see that this set wants them, or are seen here.
            await lock_channel(connection, claim.channel_id)
        await require_claim(connection, claim)
        state = "failed" if give_up else "ready"
        values: dict[str, object] = {"state": state, "reason": reason, "counted": int(counts)}
        values |= {"waits": waits, "wait": wait_seconds, "set": claim.set_id}
        await connection.execute(_TO_WAITING, values)
        if wanting:
            family = (await connection.execute(_WANTING, {"set": claim.set_id})).scalar_one()
            if family is not None:
                await ask_again(connection, claim.channel_id, family)


async def unfinished_among(database: Database, set_ids: Collection[int]) -> set[int]:
    """Those of these sets that somebody works on or will."""
    async with database.reading() as connection:
        query = text("SELECT id FROM archive_sets WHERE id = ANY(:ids) AND state IN ('ready', 'claimed')")
        return set((await connection.execute(query, {"ids": list(set_ids)})).scalars())


async def fail_claim(connection: AsyncConnection, claim: Claim, reason: str) -> None:
    """The set has failed for good; inside the transaction that ends its upload."""
    await require_claim(connection, claim)
    values = {"state": "failed", "reason": reason, "counted": 1, "waits": 0, "wait": 0, "set": claim.set_id}
    await connection.execute(_TO_WAITING, values)


async def wake_waiting(connection: AsyncConnection, content_hash: bytes) -> None:
    """Nobody publishes this content any more: whoever waited for that may look at once."""
    query = text("""
        UPDATE archive_sets SET not_before = fleet_now() WHERE content_hash = :hash AND state = 'ready'
    """)
    await connection.execute(query, {"hash": content_hash})


async def release_dead_claims(database: Database, me: UUID) -> int:
    """Claims of workers that have ended become ready again; the next claim's fence shuts the dead one out."""
    async with database.transaction("sets.release_dead") as connection:
        return (await connection.execute(_RELEASE_DEAD, {"judge": _judge(database, me)})).rowcount


async def release_claims_of(database: Database, tenure: Tenure) -> int:
    """Claims of an account whose lease we hold: nobody can be working on them.

    Whoever has lost the account releases nothing: they are its next owner's, who is at work on them.
    """
    values = {"account": tenure.account_id, "judge": _judge(database, tenure.worker_id)}
    async with database.transaction("sets.release_own") as connection:
        await require_owner(connection, tenure)
        return (await connection.execute(_RELEASE_OWN, values)).rowcount


def _judge(database: Database, me: UUID) -> UUID | None:
    return None if database.was_away(_HEARD_AGAIN_SECONDS) else me


async def dead_claims(database: Database, silent: list[UUID]) -> int:
    """How many claims belong to workers that have ended, or to these, which nobody has heard of."""
    async with database.reading() as connection:
        query = text("""
            SELECT count(*) FROM archive_sets s JOIN workers w ON w.id = s.claim_worker_id
            WHERE s.state = 'claimed' AND (w.stopped_at IS NOT NULL OR w.id = ANY(:silent))
        """)
        return int((await connection.execute(query, {"silent": silent})).scalar_one())
