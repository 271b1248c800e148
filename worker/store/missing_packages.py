"""Packages that are missed at their destination, until it is decided what that means.

A few are withdrawn, as what a person deleted. Many at once hold the destination up
(``channels.missing_since``): none of them is withdrawn and nothing is published there, by any process, until
they are seen again or a person says that they are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import UserError
from worker.store.visibility import MAY_SEE_ALL
from worker.store.withdrawals import PublishedPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database

_ACCEPT = "look at it; if they were deleted on purpose, run: worker recover --accept-missing"
_LET_IN = "no account at work sees all of it: let new members see its history, or let one in that does"
_ELSEWHERE = "or publish to another one: worker channels destination CHANNEL"


@dataclass(frozen=True, slots=True)
class Missing:
    """A package that lacks this message. ``is_gone``: another message was read in the same answer."""

    part: PublishedPart
    is_gone: bool


@dataclass(frozen=True, slots=True)
class HeldDestination:
    """A destination that lacks so many of its packages that a person has to look.

    ``is_chosen``: archives go there; others hold what was published before another one was chosen.
    ``is_seen``: an account at work may see all of it; no other is believed that something is gone.
    """

    title: str
    missing: int
    packages: int
    is_chosen: bool = True
    is_seen: bool = True

    @property
    def reason(self) -> str:
        """In words, without what to do about it."""
        return (
            f"{self.missing} of {self.packages} packages are missing from {self.title} at once:"
            " none is withdrawn, and nothing is published there"
        )

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        if self.is_seen:
            return _ACCEPT
        return f"{_LET_IN}; {_ELSEWHERE}" if self.is_chosen else _LET_IN


# Relies on packages_destination.
_PACKAGES = "(SELECT count(*) FROM packages p WHERE p.dest_channel_id = c.id AND p.state = 'published')"
_MISSING = "(SELECT count(*) FROM missing_packages m WHERE m.channel_id = c.id)"
_COUNT = text(f"SELECT {_PACKAGES} FROM channels c WHERE c.id = :channel")
_LOCK = text("SELECT 1 FROM channels WHERE id = :channel FOR NO KEY UPDATE")
_NOTE = text("""
    INSERT INTO missing_packages AS m (package_id, channel_id, message_id, is_gone)
    VALUES (:package, :channel, :message, :gone)
    ON CONFLICT (package_id) DO UPDATE SET channel_id = excluded.channel_id,
        message_id = excluded.message_id, is_gone = excluded.is_gone
    WHERE excluded.is_gone OR m.channel_id <> excluded.channel_id
""")
_SEEN = text("DELETE FROM missing_packages WHERE channel_id = :channel AND message_id = ANY(:messages)")
_HOLD = text(f"""
    UPDATE channels c SET missing_since = coalesce(missing_since, fleet_now())
    WHERE id = :channel AND {_MISSING} > :limit
""")
# Published anew elsewhere, or put right by hand.
_STALE = text("""
    DELETE FROM missing_packages m WHERE m.channel_id = :channel AND NOT EXISTS (
        SELECT FROM packages p JOIN package_parts k ON k.package_id = p.id
        WHERE p.id = m.package_id AND p.state = 'published' AND k.dest_channel_id = m.channel_id
          AND k.message_id = m.message_id)
""")
_RELEASE = text(f"UPDATE channels c SET missing_since = NULL WHERE id = :channel AND {_MISSING} <= :limit")
_LIFT = text("UPDATE channels SET missing_since = NULL WHERE id = :channel")
_FORGET = text("""
    DELETE FROM missing_packages WHERE channel_id = :channel
      AND (:accepted OR EXISTS (SELECT FROM channels WHERE id = :channel AND missing_since IS NULL))
""")
# Relies on missing_packages_channel.
_NOTED = text("""
    SELECT k.package_id, k.ordinal, p.content_hash, p.file_name, k.message_id, k.document_id, m.is_gone
    FROM missing_packages m
    JOIN packages p ON p.id = m.package_id AND p.state = 'published'
    JOIN package_parts k ON k.package_id = m.package_id AND k.message_id = m.message_id
        AND k.dest_channel_id = m.channel_id
    WHERE m.channel_id = :channel AND m.package_id > :after ORDER BY m.package_id LIMIT :limit
""")
_HELD = f"""
    SELECT c.title, {_MISSING}, {_PACKAGES}, c.is_destination, EXISTS (
        SELECT FROM memberships m JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
        WHERE m.channel_id = c.id AND m.can_read AND {MAY_SEE_ALL})
    FROM channels c
    WHERE c.missing_since IS NOT NULL AND {{which}} ORDER BY c.id
"""
_ALL_HELD = text(_HELD.format(which="true"))
_IF_HELD = text(_HELD.format(which="c.id = :channel"))


async def count_packages(database: Database, channel_id: int) -> int:
    """How many packages lie in this channel, as far as the database knows."""
    async with database.reading() as connection:
        return int((await connection.execute(_COUNT, {"channel": channel_id})).scalar_one())


async def note(
    database: Database, channel_id: int, missing: Sequence[Missing], seen: Iterable[int], *, limit: int
) -> None:
    """What one look has shown: packages that lack a message, and messages that stand.

    With more than ``limit`` missing the destination is held up from here on, not at the end of the pass.
    """
    async with database.transaction("missing.note") as connection:
        await connection.execute(_LOCK, {"channel": channel_id})
        await connection.execute(_SEEN, {"channel": channel_id, "messages": list(seen)})
        rows = [
            {
                "package": item.part.package_id,
                "channel": channel_id,
                "message": item.part.message_id,
                "gone": item.is_gone,
            }
            for item in missing
        ]
        if rows:
            await connection.execute(_NOTE, rows)
        await connection.execute(_HOLD, {"channel": channel_id, "limit": limit})


async def noted(database: Database, channel_id: int, after: int, limit: int) -> list[Missing]:
    """The next packages that were missed in this channel, in the order of their numbers."""
    values = {"channel": channel_id, "after": after, "limit": limit}
    async with database.reading() as connection:
        rows = await connection.execute(_NOTED, values)
        return [Missing(PublishedPart(*row[:-1]), row.is_gone) for row in rows]


async def decide(database: Database, channel_id: int, *, limit: int) -> HeldDestination | None:
    """Hold the destination up if more than ``limit`` packages are missing, and let it go on if not."""
    async with database.transaction("missing.decide") as connection:
        values = {"channel": channel_id, "limit": limit}
        await connection.execute(_LOCK, values)
        await connection.execute(_STALE, values)
        await connection.execute(_HOLD, values)
        await connection.execute(_RELEASE, values)
        return await _held(connection, channel_id)


async def forget(database: Database, channel_id: int) -> None:
    """What was missed there is dealt with, unless another process has come to hold the destination up."""
    async with database.transaction("missing.forget") as connection:
        await connection.execute(_LOCK, {"channel": channel_id})
        await connection.execute(_FORGET, {"channel": channel_id, "accepted": False})


async def accept(database: Database, channel_id: int) -> None:
    """A person has said that all of it is gone: the destination goes on."""
    async with database.transaction("missing.accept") as connection:
        await connection.execute(_FORGET, {"channel": channel_id, "accepted": True})
        await connection.execute(_LIFT, {"channel": channel_id})


async def any_noted(database: Database, channel_id: int) -> bool:
    """Whether something is missed in this channel, or was when its last pass broke off."""
    async with database.reading() as connection:
        query = text("""
            SELECT EXISTS (SELECT FROM missing_packages WHERE channel_id = :channel)
                OR EXISTS (SELECT FROM channels WHERE id = :channel AND missing_since IS NOT NULL)
        """)
        return bool((await connection.execute(query, {"channel": channel_id})).scalar_one())


async def held_channels(database: Database) -> set[int]:
    """The destinations that are held up."""
    async with database.reading() as connection:
        query = text("SELECT id FROM channels WHERE missing_since IS NOT NULL")
        return set((await connection.execute(query)).scalars())


async def held_destinations(database: Database) -> list[HeldDestination]:
    """Every destination that is held up, and how much it lacks."""
    async with database.reading() as connection:
        return [HeldDestination(*row) for row in await connection.execute(_ALL_HELD)]


async def held(database: Database, channel_id: int) -> HeldDestination | None:
    """This destination if it is held up."""
    async with database.reading() as connection:
        return await _held(connection, channel_id)


async def require_whole(connection: AsyncConnection, channel_id: int) -> None:
    """Refuse to write where so much is missing that a person has to look first."""
    if (found := await _held(connection, channel_id)) is not None:
        raise UserError(found.reason, remedy=found.remedy)


async def _held(connection: AsyncConnection, channel_id: int) -> HeldDestination | None:
    row = (await connection.execute(_IF_HELD, {"channel": channel_id})).one_or_none()
    return None if row is None else HeldDestination(*row)
