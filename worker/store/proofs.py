"""Sets whose names show no hole: their bytes are asked before anybody may claim them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import set_name
from worker.store.collecting import ask_again, form_sets, lock_channel
from worker.store.sets import SourcePart
from worker.store.visibility import sees_message, sees_set

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from worker.domain.archive_set import ArchiveSet
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Unproven:
    """A set to be looked at, as it was when this was read: its fence moves with its files.

    ``unended``: tries of it that were begun and did not end, this one included. ``contents_failed``:
    it was fetched, and what its headers could not show was wrong. ``held_until`` is this try's alone.
    """

    set_id: int
    fence: int
    channel_id: int
    name: str
    attempts: int
    waits: int
    family: str | None
    unended: int
    contents_failed: bool
    held_until: datetime
    parts: tuple[SourcePart, ...]


# Relies on archive_sets_to_prove. An account that does not see a message cannot tell that it is gone. Moving
# the set back keeps a second account from reading the same headers at the same time; should this process die,
# somebody looks again as soon as its lease is over, or later where many parts have to be read: a proof that
# goes on must not be counted as one that never ended. The try is counted before its work, which may be what
# ends the process.
_PARTS_IN_HOLD = 50
_NEXT = text(f"""
    UPDATE archive_sets SET unended = unended + 1, not_before = fleet_now()
        + :hold * greatest(1.0, part_count / {_PARTS_IN_HOLD}.0) * interval '1 second'
    WHERE id IN (
        SELECT n.id FROM archive_sets n
        JOIN memberships m ON m.channel_id = n.channel_id AND m.account_id = :account AND m.can_read
        JOIN channels c ON c.id = n.channel_id AND c.is_enabled
        WHERE n.state = 'collecting' AND n.to_prove AND n.not_before <= fleet_now()
          AND n.channel_id <> ALL (CAST(:resting AS integer[]))
          AND {sees_set("n.id")} AND (n.unended > 0) = :alone
        ORDER BY n.not_before, n.id LIMIT :most FOR UPDATE OF n SKIP LOCKED)
    RETURNING id, fence, channel_id, name, attempts, waits, family, unended, not_before,
        found_wanting AND content_hash IS NOT NULL AS contents_failed
""")
# Somebody else may have taken the set since, or this may have been done before: the hold tells one try's end.
_UNCOUNT = text("""
    UPDATE archive_sets s SET unended = s.unended - 1, not_before = fleet_now()
    FROM unnest(CAST(:sets AS bigint[]), CAST(:holds AS timestamptz[])) AS try (set_id, held_until)
    WHERE s.id = try.set_id AND s.not_before = try.held_until
      AND s.state = 'collecting' AND s.to_prove AND s.unended > 0
""")
_PARTS = text("""
    SELECT set_id, id, message_id, document_id, file_name, size FROM source_files
    WHERE set_id = ANY(:sets) ORDER BY set_id, part_number
""")
_SETTLE = text("""
    UPDATE archive_sets SET state = :state, reason = :reason, to_prove = :to_prove, attempts = :attempts,
        unended = 0, found_wanting = :wanting,
        tried = ARRAY(SELECT DISTINCT unnest(tried || CAST(:tried AS bigint[]))),
        not_before = fleet_now() + :wait * interval '1 second', updated_at = fleet_now()
    WHERE id = :set AND fence = :fence AND state = 'collecting' AND to_prove
""")
_SETTLE_FEWER = text("""
    UPDATE archive_sets SET state = 'ready', reason = NULL, to_prove = false, name = :name,
        part_count = :count, total_size = :size, lead_document_id = :lead, attempts = 0, unended = 0,
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
        values = {"account": account_id, "hold": hold, "resting": list(resting)}
        rows = (await connection.execute(_NEXT, {**values, "most": most, "alone": False})).all()
        if not rows:
            # One of those whose last try never ended may be why: each is tried by itself.
            rows = (await connection.execute(_NEXT, {**values, "most": 1, "alone": True})).all()
        found = await connection.execute(_PARTS, {"sets": [row.id for row in rows]})
        parts: dict[int, list[SourcePart]] = {row.id: [] for row in rows}
        for set_id, *part in found:
            parts[set_id].append(SourcePart(*part))
    return [
        Unproven(
            set_id=row.id,
            fence=row.fence,
            channel_id=row.channel_id,
            name=row.name,
            attempts=row.attempts,
            waits=row.waits,
            family=row.family,
            unended=row.unended,
            contents_failed=row.contents_failed,
            held_until=row.not_before,
            parts=tuple(parts[row.id]),
        )
        for row in sorted(rows, key=lambda row: row.id)
    ]


async def uncount(database: Database, unproven: Sequence[Unproven]) -> None:
    """What ended these tries was no set of them: they were none, and are begun again at once."""
    async with database.transaction("proofs.uncount") as connection:
        values = {
            "sets": [one.set_id for one in unproven],
            "holds": [one.held_until for one in unproven],
        }
        await connection.execute(_UNCOUNT, values)


async def settle_complete(database: Database, unproven: Unproven) -> bool:
    """The set may be claimed; false if its files have changed meanwhile."""
    return await _settle(database, unproven, state="ready")


async def settle_incomplete(
    database: Database, unproven: Unproven, reason: str, tried: Sequence[int] = ()
) -> bool:
    """The set waits for further parts, or for other files of its numbers than the documents ``tried``.

    What was fetched and found broken has failed: it is not told from what was merely never completed. Sets
    of its name that lack a part are asked again: they can have its files only when it is not whole with them.
    """
    state = "failed" if unproven.contents_failed else "collecting"
    return await _settle(database, unproven, state=state, reason=reason, wanting=True, tried=tried)


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
        wanting=unproven.contents_failed,
    )


async def give_up(database: Database, unproven: Unproven, reason: str) -> bool:
    """Nothing will be found out by asking once more: the set has failed, and a person may try it again."""
    attempts = unproven.attempts + 1
    return await _settle(database, unproven, state="failed", reason=reason, attempts=attempts)


_UNDECIDED = text("""
    UPDATE archive_sets SET undecided_since = since, unended = 0, updated_at = fleet_now(),
        state = CASE WHEN over THEN 'ready' ELSE 'collecting' END, to_prove = NOT over,
        is_unproven = over,
        reason = CASE WHEN over THEN NULL ELSE :reason END,
        not_before = CASE WHEN over THEN fleet_now() ELSE since + :patience * interval '1 second' END
    FROM (SELECT id AS known, coalesce(undecided_since, fleet_now()) AS since,
              coalesce(undecided_since, fleet_now()) + :patience * interval '1 second'
                  <= fleet_now() AS over
          FROM archive_sets WHERE id = :set) each
    WHERE id = known AND fence = :fence AND state = 'collecting' AND to_prove
    RETURNING is_unproven
""")


async def settle_undecided(database: Database, unproven: Unproven, reason: str, patience: float) -> bool:
    """Nothing will ever prove the set: it waits for parts that may yet come; whether that is over."""
    async with database.transaction("proofs.undecided") as connection:
        values = {
            "set": unproven.set_id,
            "fence": unproven.fence,
            "reason": reason,
            "patience": patience,
        }
        return bool((await connection.execute(_UNDECIDED, values)).scalar_one_or_none())


async def _settle(
    database: Database,
    unproven: Unproven,
    *,
    state: str,
    reason: str | None = None,
    to_prove: bool = False,
    wait: float = 0.0,
    attempts: int = 0,
    wanting: bool = False,
    tried: Sequence[int] = (),
) -> bool:
    is_incomplete = wanting and not to_prove
    async with database.transaction("proofs.settle") as connection:
        if is_incomplete:
            await lock_channel(connection, unproven.channel_id)
        values = {
            "set": unproven.set_id,
            "fence": unproven.fence,
            "state": state,
            "reason": reason,
            "to_prove": to_prove,
            "wait": wait,
            "attempts": attempts,
            "wanting": wanting,
            "tried": list(tried),
        }
        settled = bool((await connection.execute(_SETTLE, values)).rowcount)
        if settled and is_incomplete and unproven.family is not None:
            await ask_again(connection, unproven.channel_id, unproven.family)
        return settled


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
