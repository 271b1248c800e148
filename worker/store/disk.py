"""Disk space promised to sets, per volume, so that the processes of a host do not promise it twice.

A reservation is for bytes that are still to come: once they are written the file system counts them itself.
It counts for as long as its set is claimed with the same fence, so one that a crash left behind promises
nothing any more; ``sweep_reservations`` only tidies. A set that would fit if the others were done *asks*
for its space, so that smaller ones do not pass it for ever; one at a time, or two would wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.disk_space import Space
    from worker.store.database import Database
    from worker.store.sets import Claim

# The first number of the two-number form; accounts have another one.
_VOLUME_CLASS = 1_094_927_703
# An asking set is looked at again long before this; what has not been renewed has lost its account.
_ASKED_SECONDS = 120
# A process that is stopped or starves while it holds a volume holds up every other one of its host. So long
# without a statement ends its session and undoes its transaction; the longest step between two is to ask the
# disk for its space, or to clear away what was only kept, after which the claim is simply tried again.
_HELD_SECONDS = 5
# The setting lasts as long as the transaction, and is in force before the lock is waited for.
_LOCK = text("""
    SELECT set_config('idle_in_transaction_session_timeout', :held, true),
           pg_advisory_xact_lock(:class, hashtext(:volume))
""")
# Relies on disk_reservations_volume.
_PROMISED = text("""
    SELECT r.set_id, r.fence, r.bytes, r.written_bytes
    FROM disk_reservations r JOIN archive_sets s ON s.id = r.set_id
    WHERE r.volume = :volume AND (
        (s.state = 'claimed' AND s.fence = r.fence)
        OR (s.state = 'ready' AND r.fence IS NULL
            AND r.reserved_at > fleet_now() - :asked * interval '1 second'))
""")
_RESERVE = text("""
    INSERT INTO disk_reservations (set_id, volume, fence, bytes) VALUES (:set, :volume, :fence, :bytes)
    ON CONFLICT (set_id) DO UPDATE SET volume = excluded.volume, fence = excluded.fence,
        bytes = excluded.bytes, written_bytes = 0, reserved_at = fleet_now()
""")


class Disk(Protocol):
    """The volume that downloads go to."""

    @property
    def name(self) -> str:
        """The same in every process that shares the volume."""
        ...

    async def space(self) -> Space:
        """What is free on it now."""
        ...

    async def make_room(self) -> bool:
        """Remove what is only kept for convenience; whether there was anything."""
        ...


@dataclass(frozen=True, slots=True)
class Promised:
    """What a volume has been promised for, one entry per set."""

    outstanding: Mapping[int, int]
    in_flight: int
    asking: int | None

    def besides(self, set_id: int) -> int:
        """Bytes still to be written for other sets."""
        return sum(count for owner, count in self.outstanding.items() if owner != set_id)

    def may_ask(self, set_id: int) -> bool:
        """Whether no other set is asking already."""
        return self.asking in {None, set_id}


async def lock_volume(connection: AsyncConnection, volume: str) -> Promised:
    """Be the only one who promises space on this volume until the transaction ends, which must be soon.

    Ask the file system for its free space only after this: what is written by then may still be in here,
    which errs on the safe side.
    """
    held = f"{_HELD_SECONDS}s"
    await connection.execute(_LOCK, {"held": held, "class": _VOLUME_CLASS, "volume": volume})
    rows = (await connection.execute(_PROMISED, {"volume": volume, "asked": _ASKED_SECONDS})).all()
    return Promised(
        {row.set_id: row.bytes - row.written_bytes for row in rows},
        sum(row.bytes for row in rows if row.fence is not None),
        next((row.set_id for row in rows if row.fence is None), None),
    )


async def reserve(
    connection: AsyncConnection, volume: str, *, set_id: int, fence: int | None, size: int
) -> None:
    """Promise a set its space; without a fence it only asks for it. Inside the locked transaction."""
    values = {"set": set_id, "volume": volume, "fence": fence, "bytes": size}
    await connection.execute(_RESERVE, values)


async def note_written(connection: AsyncConnection, claim: Claim) -> None:
    """All bytes of the set are on the disk; inside the transaction that keeps their hashes."""
    await connection.execute(
        text("UPDATE disk_reservations SET written_bytes = bytes WHERE set_id = :set AND fence = :fence"),
        {"set": claim.set_id, "fence": claim.fence},
    )


async def release(database: Database, claim: Claim) -> None:
    """The set's files are gone: give its space back, and let those look again that asked for some."""
    async with database.transaction("disk.release") as connection:
        query = text("DELETE FROM disk_reservations WHERE set_id = :set AND fence = :fence RETURNING volume")
        values = {"set": claim.set_id, "fence": claim.fence}
        volume = (await connection.execute(query, values)).scalar_one_or_none()
        if volume is not None:
            await connection.execute(
                text("""
                    UPDATE archive_sets s SET not_before = fleet_now() FROM disk_reservations r
                    WHERE r.volume = :volume AND r.fence IS NULL AND s.id = r.set_id AND s.state = 'ready'
                      AND s.not_before > fleet_now()
                """),
                {"volume": volume},
            )


async def dead_reservations(database: Database, silent: list[UUID]) -> int:
    """How many rows ``sweep_reservations`` would remove once these workers are known to have ended."""
    query = text("""
        SELECT count(*) FROM disk_reservations r JOIN archive_sets s ON s.id = r.set_id
        LEFT JOIN workers w ON w.id = s.claim_worker_id
        WHERE NOT (s.state = 'claimed' AND s.fence IS NOT DISTINCT FROM r.fence
                   AND w.stopped_at IS NULL AND NOT coalesce(w.id = ANY(:silent), false))
          AND NOT (s.state = 'ready' AND r.fence IS NULL
                   AND r.reserved_at > fleet_now() - :asked * interval '1 second')
    """)
    async with database.reading() as connection:
        values = {"silent": silent, "asked": _ASKED_SECONDS}
        return int((await connection.execute(query, values)).scalar_one())


async def sweep_reservations(database: Database) -> int:
    """Remove what no set needs any more; how many rows."""
    async with database.transaction("disk.sweep") as connection:
        result = await connection.execute(
            text("""
                DELETE FROM disk_reservations r USING archive_sets s
                WHERE s.id = r.set_id AND NOT (s.state = 'claimed' AND s.fence IS NOT DISTINCT FROM r.fence)
                  AND NOT (s.state = 'ready' AND r.fence IS NULL
                           AND r.reserved_at > fleet_now() - :asked * interval '1 second')
            """),
            {"asked": _ASKED_SECONDS},
        )
    return result.rowcount
