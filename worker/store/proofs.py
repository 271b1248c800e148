"""Sets whose names show no hole: their bytes are asked before anybody may claim them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import set_name
from worker.store.collecting import form_sets, lock_channel
from worker.store.sets import SourcePart
from worker.store.visibility import sees_message, sees_set

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from worker.domain.archive_set import ArchiveSet
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Unproven:
    """A set to be looked at, as it was when this was read: its fence moves with its files."""

    set_id: int
    fence: int
    channel_id: int
    name: str
    attempts: int
    waits: int
    parts: tuple[SourcePart, ...]


# Relies on archive_sets_to_prove. An account that does not see a message cannot tell that it is gone. Moving
# the set back keeps a second account from reading the same headers at the same time; should this process die,
# somebody looks again as soon as its lease is over.
_NEXT = text(f"""
    UPDATE archive_sets SET not_before = fleet_now() + :hold * interval '1 second'
    WHERE id IN (
        SELECT n.id FROM archive_sets n
        JOIN memberships m ON m.channel_id = n.channel_id AND m.account_id = :account AND m.can_read
        JOIN channels c ON c.id = n.channel_id AND c.is_enabled
        WHERE n.state = 'collecting' AND n.to_prove AND n.not_before <= fleet_now()
          AND n.channel_id <> ALL (CAST(:resting AS integer[]))
          AND {sees_set("n.id")}
        ORDER BY n.not_before, n.id LIMIT :most FOR UPDATE OF n SKIP LOCKED)
    RETURNING id, fence, channel_id, name, attempts, waits
""")
_PARTS = text("""
    SELECT set_id, id, message_id, document_id, file_name, size FROM source_files
    WHERE set_id = ANY(:sets) ORDER BY set_id, part_number
""")
_SETTLE = text("""
    UPDATE archive_sets SET state = :state, reason = :reason, to_prove = :to_prove, attempts = :attempts,
        not_before = fleet_now() + :wait * interval '1 second', updated_at = fleet_now()
    WHERE id = :set AND fence = :fence AND state = 'collecting' AND to_prove
""")
_SETTLE_FEWER = text("""
    UPDATE archive_sets SET state = 'ready', reason = NULL, to_prove = false, name = :name,
        part_count = :count, total_size = :size, lead_document_id = :lead, attempts = 0,
        not_before = fleet_now(), fence = fence + 1, updated_at = fleet_now()
    WHERE id = :set AND fence = :fence AND state = 'collecting' AND to_prove RETURNING family
""")
_SPARE = text("UPDATE source_files SET set_id = NULL, part_number = NULL WHERE id = ANY(:files)")
_GONE = text(f"""
    UPDATE source_files f SET is_gone = true, set_id = NULL, part_number = NULL
    FROM archive_sets s
    WHERE f.channel_id = :channel AND f.message_id = ANY(:messages) AND s.id = f.set_id
      AND s.id = :set AND s.fence = :fence AND s.state = 'collecting'
      AND {sees_message(":channel", "f.message_id")}
    RETURNING f.family
""")


async def next_to_prove(
    database: Database, account_id: int, *, most: int, hold: float, resting: Sequence[int] = ()
) -> list[Unproven]:
    """The sets that have waited longest for their proof among those that this account can read."""
    async with database.transaction("proofs.next") as connection:
        values = {"account": account_id, "most": most, "hold": hold, "resting": list(resting)}
        rows = (await connection.execute(_NEXT, values)).all()
        found = await connection.execute(_PARTS, {"sets": [row.id for row in rows]})
        parts: dict[int, list[SourcePart]] = {row.id: [] for row in rows}
        for set_id, *part in found:
            parts[set_id].append(SourcePart(*part))
    return [
        Unproven(row.id, row.fence, row.channel_id, row.name, row.attempts, row.waits, tuple(parts[row.id]))
        for row in sorted(rows, key=lambda row: row.id)
    ]


async def settle_complete(database: Database, unproven: Unproven) -> bool:
    """The set may be claimed; false if its files have changed meanwhile."""
    return await _settle(database, unproven, state="ready")


async def settle_incomplete(database: Database, unproven: Unproven, reason: str) -> bool:
    """The set waits for further parts; only those will have it looked at again."""
    return await _settle(database, unproven, state="collecting", reason=reason)


async def settle_without_spares(database: Database, unproven: Unproven, whole: ArchiveSet) -> bool:
    """The set is whole with these of its files; the others look for a set of their own."""
    kept = {part.message_id for part in whole.parts}
    async with database.transaction("proofs.spares") as connection:
        await lock_channel(connection, unproven.channel_id)
        values = {
            "set": unproven.set_id,
            "fence": unproven.fence,
            "name": set_name(whole),
            "count": len(whole.parts),
            "size": sum(part.size for part in whole.parts),
            "lead": whole.parts[0].document_id,
        }
        family = (await connection.execute(_SETTLE_FEWER, values)).scalar_one_or_none()
        if family is None:
            return False
        spare = [part.source_file_id for part in unproven.parts if part.message_id not in kept]
        await connection.execute(_SPARE, {"files": spare})
        await form_sets(connection, unproven.channel_id, [family])
        return True


async def look_again(
    database: Database, unproven: Unproven, reason: str, wait: float, *, counts: bool = False
) -> bool:
    """Nothing was found out: the same question is asked later. ``counts``: it was one of its attempts."""
    attempts = unproven.attempts + int(counts)
    return await _settle(
        database,
        unproven,
        state="collecting",
        reason=reason,
        to_prove=True,
        wait=wait,
        attempts=attempts,
    )


async def give_up(database: Database, unproven: Unproven, reason: str) -> bool:
    """Nothing will be found out by asking once more: the set has failed, and a person may try it again."""
    attempts = unproven.attempts + 1
    return await _settle(database, unproven, state="failed", reason=reason, attempts=attempts)


async def _settle(
    database: Database,
    unproven: Unproven,
    *,
    state: str,
    reason: str | None = None,
    to_prove: bool = False,
    wait: float = 0.0,
    attempts: int = 0,
) -> bool:
    async with database.transaction("proofs.settle") as connection:
        values = {
            "set": unproven.set_id,
            "fence": unproven.fence,
            "state": state,
            "reason": reason,
            "to_prove": to_prove,
            "wait": wait,
            "attempts": attempts,
        }
        return bool((await connection.execute(_SETTLE, values)).rowcount)


async def parts_are_gone(
    database: Database, account_id: int, unproven: Unproven, messages: Collection[int]
) -> None:
    """These messages no longer carry the set's files: the set is formed anew without them.

    The account says so that has looked; it must still be known to see where they were.
    """
    async with database.transaction("proofs.gone") as connection:
        await lock_channel(connection, unproven.channel_id)
        values = {
            "channel": unproven.channel_id,
            "account": account_id,
            "messages": list(messages),
            "set": unproven.set_id,
            "fence": unproven.fence,
        }
        families = (await connection.execute(_GONE, values)).scalars().all()
        await form_sets(connection, unproven.channel_id, families)
