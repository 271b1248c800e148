"""Which set an account takes next: channels in turn, large sets where they suit, none that does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from worker.domain.disk_space import lack_of_room
from worker.domain.forming import PROTECTED, UNCHECKED
from worker.domain.split_plan import MIB
from worker.errors import CommitUnknownError
from worker.store.disk import lock_volume, reserve
from worker.store.sets import CLAIM, claim_of
from worker.store.unheard_claims import UnheardClaimError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.disk_space import NoRoom
    from worker.store.database import Database
    from worker.store.disk import Disk, Promised
    from worker.store.sets import Claim

# A disk that is full turns away one set after the other; the rest is looked at the next time.
_MOST_TURNED_AWAY = 20
_ABLE_MINUTES = 10
_SLOWED_MINUTES = 60
# For so long may a set be left to an account that suits it better, unless that one has no room for it either.
_LEFT_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Taker:
    """An account that asks for work, and what it leaves to others.

    A single file above ``standard_limit`` is left to a Premium account that can send it whole; an account
    that Telegram slows down leaves sets above ``large`` to one that is not slowed down. Either ends when the
    set has been there for an hour, or was turned away by a disk without room for it.
    """

    account_id: int
    worker_id: UUID
    is_premium: bool
    standard_limit: int
    premium_limit: int
    large: int = 256 * MIB
    kept_free: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is: channels after ``after`` in the circle come first, ``resting`` ones not at all."""

    after: int = 0
    resting: Sequence[int] = ()
    paused_accounts: Sequence[int] = ()


# Others count only if they are at work, or were a moment ago: a set must not wait for one that never comes.
_ABLE = f"""
    SELECT a.id, a.is_premium FROM accounts a
    WHERE a.id <> :account AND a.state = 'ready' AND a.id <> ALL (CAST(:paused AS integer[]))
      AND greatest(a.lease_until, a.updated_at) > fleet_now() - interval '{_ABLE_MINUTES} minutes'
      AND EXISTS (SELECT FROM memberships d JOIN channels dc ON dc.id = d.channel_id AND dc.is_destination
                  WHERE d.account_id = a.id AND d.can_post)
      AND a.id NOT IN (SELECT account_id FROM slowed)
"""
# Relies on api_activity_floods.
_SLOWED = f"""
    SELECT a.id AS account_id FROM accounts a WHERE EXISTS (
        SELECT FROM api_activity f WHERE f.account_id = a.id
          AND f.method IN ('upload.getFile', 'upload.saveBigFilePart', 'upload.saveFilePart')
          AND f.flood_wait_seconds IS NOT NULL AND starts_with(f.error_code, 'FLOOD_PREMIUM_WAIT')
          AND f.at > fleet_now() - interval '{_SLOWED_MINUTES} minutes')
"""
# The circle of channels is short and sorted first, so that only the first one with work is looked into. The
# look relies on archive_sets_claimable. A volume without room holds no set up for hosts that have another. A
# set with an open intent belongs to the intent's account.
_CANDIDATE = text(f"""
    WITH slowed AS MATERIALIZED ({_SLOWED}),
    able AS MATERIALIZED ({_ABLE}),
    circle AS MATERIALIZED (
        SELECT c.id, m.visible_from, c.allow_protected, c.is_protected,
               NOT :premium AND EXISTS (
                   SELECT FROM memberships o JOIN able ON able.id = o.account_id AND able.is_premium
                   WHERE o.channel_id = c.id
                     AND o.can_read AND o.visible_from = 0) AS whole_elsewhere,
               :account IN (SELECT account_id FROM slowed) AND EXISTS (
                   SELECT FROM memberships o JOIN able ON able.id = o.account_id
                   WHERE o.channel_id = c.id
                     AND o.can_read AND o.visible_from = 0) AS faster_elsewhere
        FROM memberships m JOIN channels c ON c.id = m.channel_id AND c.is_enabled
        WHERE m.account_id = :account AND m.can_read AND m.visible_from IS NOT NULL
          AND c.id <> ALL (CAST(:resting AS integer[]))
        ORDER BY c.id <= :after, c.id
    )
    SELECT next.id, next.total_size, NOT circle.allow_protected AND (circle.is_protected OR EXISTS (
               SELECT FROM source_files f WHERE f.set_id = next.id AND f.is_protected)) AS is_protected
    FROM circle CROSS JOIN LATERAL (
        SELECT s.id, s.total_size FROM archive_sets s
        WHERE s.channel_id = circle.id AND s.state = 'ready'
          AND (s.not_before <= fleet_now() OR s.turned_away_by <> :volume)
          AND (circle.visible_from = 0 OR NOT EXISTS (
              SELECT FROM source_files f WHERE f.set_id = s.id AND f.message_id < circle.visible_from))
          AND NOT (s.turned_away_at IS NULL
                   AND s.not_before > fleet_now() - interval '{_LEFT_MINUTES} minutes'
                   AND (circle.whole_elsewhere AND s.part_count = 1
                            AND s.total_size > :standard_limit AND s.total_size <= :premium_limit
                        OR circle.faster_elsewhere AND s.total_size > :large))
          AND NOT EXISTS (SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open')
          AND NOT EXISTS (SELECT FROM archive_sets o WHERE o.lead_document_id = s.lead_document_id
                          AND o.state = 'claimed')
        ORDER BY s.not_before, s.id LIMIT 1 FOR UPDATE OF s SKIP LOCKED
    ) next LIMIT 1
""")
# Protected while somebody worked on it, it is in line again after a failure.
_SKIP = text("""
    UPDATE archive_sets SET state = 'skipped', reason = :reason, updated_at = fleet_now() WHERE id = :set
""")
_POSTPONE = text("""
    UPDATE archive_sets SET reason = :reason, not_before = fleet_now() + :wait * interval '1 second',
        turned_away_at = CASE WHEN :for_long THEN fleet_now() ELSE turned_away_at END,
        turned_away_by = :volume
    WHERE id = :set
""")


async def claim_next(database: Database, taker: Taker, turn: Turn, disk: Disk) -> Claim | None:
    """The next set for this account with its disk space reserved; None if there is none now.

    A set that does not fit on the disk is told so and passed over.
    """
    claim: Claim | None = None
    try:
        async with database.transaction("sets.claim") as connection:
            promised = await lock_volume(connection, disk.name)
            for _ in range(_MOST_TURNED_AWAY):
                row = (await connection.execute(_CANDIDATE, _values(taker, turn, disk))).one_or_none()
                if row is None:
                    return None
                if row.is_protected:
                    await connection.execute(_SKIP, {"set": row.id, "reason": PROTECTED})
                    continue
                lack = await _lack(disk, promised, taker.kept_free, row.id, row.total_size)
                if lack is None:
                    claim = await _take(connection, taker, disk, row.id)
                    break
                await _turn_away(connection, row.id, disk, lack)
                if lack.asks and promised.may_ask(row.id):
                    await reserve(connection, disk.name, set_id=row.id, fence=None, size=row.total_size)
                    promised = await lock_volume(connection, disk.name)
    except IntegrityError:
        # Another account took a copy of the same document in this very moment; it is busy now.
        return None
    except CommitUnknownError as error:
        if claim is None:
            raise
        raise UnheardClaimError(error.what, claim) from error
    return claim


_SECONDS_TO_NEXT = text("""
    SELECT CAST(extract(epoch FROM min(next.not_before) - fleet_now()) AS double precision)
    FROM memberships m JOIN channels c ON c.id = m.channel_id AND c.is_enabled CROSS JOIN LATERAL (
        SELECT s.not_before FROM archive_sets s
        WHERE s.channel_id = c.id AND s.state = 'ready' AND s.not_before > fleet_now()
        ORDER BY s.not_before LIMIT 1
    ) next WHERE m.account_id = :account AND m.can_read
""")


async def seconds_to_next(database: Database, account_id: int) -> float | None:
    """When the next set that has to wait may be claimed; None if none waits."""
    async with database.reading() as connection:
        values = {"account": account_id}
        seconds: float | None = (await connection.execute(_SECONDS_TO_NEXT, values)).scalar_one()
        return seconds


# Relies on archive_sets_to_prove. A hold that nobody renews runs out, so nobody waits for the dead; nor for
# what a clock wrote that has stepped back since: no hold is for an hour.
_OTHERS_PREPARE = text("""
    SELECT EXISTS (
        SELECT FROM memberships m JOIN channels c ON c.id = m.channel_id AND c.is_enabled
        WHERE m.account_id = :account AND m.can_read AND c.id <> ALL (CAST(:resting AS integer[])) AND (
            EXISTS (SELECT FROM scan_cursors cu WHERE cu.channel_id = c.id
                      AND cu.held_by <> :account
                      AND cu.held_until BETWEEN fleet_now() AND fleet_now() + interval '1 hour')
            OR EXISTS (SELECT FROM archive_sets s WHERE s.channel_id = c.id AND s.state = 'collecting'
                         AND s.to_prove AND s.reason = :unchecked
                         AND s.not_before BETWEEN fleet_now() AND fleet_now() + interval '1 hour')))
""")


async def others_prepare(database: Database, account_id: int, resting: Sequence[int]) -> bool:
    """Whether another account is reading a source of this one, or proving what was found there."""
    async with database.reading() as connection:
        values = {"account": account_id, "resting": list(resting), "unchecked": UNCHECKED}
        return bool((await connection.execute(_OTHERS_PREPARE, values)).scalar_one())


async def reserve_for(database: Database, claim: Claim, disk: Disk, kept_free: int) -> NoRoom | None:
    """Reserve space for a set that is claimed already; what is in the way of it, if something is."""
    async with database.transaction("disk.reserve") as connection:
        promised = await lock_volume(connection, disk.name)
        lack = await _lack(disk, promised, kept_free, claim.set_id, claim.total_size)
        if lack is None:
            await reserve(
                connection, disk.name, set_id=claim.set_id, fence=claim.fence, size=claim.total_size
            )
        return lack


async def _lack(disk: Disk, promised: Promised, kept_free: int, set_id: int, size: int) -> NoRoom | None:
    while True:
        lack = lack_of_room(
            size,
            await disk.space(),
            kept_free=kept_free,
            promised=promised.besides(set_id),
            in_flight=promised.in_flight,
        )
        if lack is None or not await disk.make_room():
            return lack


async def _take(connection: AsyncConnection, taker: Taker, disk: Disk, set_id: int) -> Claim:
    values = {"account": taker.account_id, "worker": taker.worker_id, "set": set_id}
    claim = await claim_of(connection, (await connection.execute(CLAIM, values)).one())
    await reserve(connection, disk.name, set_id=claim.set_id, fence=claim.fence, size=claim.total_size)
    return claim


async def _turn_away(connection: AsyncConnection, set_id: int, disk: Disk, lack: NoRoom) -> None:
    lasting = {"volume": disk.name, "for_long": not lack.asks}
    values = {"set": set_id, "reason": lack.reason, "wait": lack.seconds, **lasting}
    await connection.execute(_POSTPONE, values)


def _values(taker: Taker, turn: Turn, disk: Disk) -> dict[str, object]:
    return {
        "volume": disk.name,
        "account": taker.account_id,
        "premium": taker.is_premium,
        "standard_limit": taker.standard_limit,
        "premium_limit": taker.premium_limit,
        "large": taker.large,
        "after": turn.after,
        "resting": list(turn.resting),
        "paused": list(turn.paused_accounts),
    }
