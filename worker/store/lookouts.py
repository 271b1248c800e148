"""Which account may look through the channel that archives go to, and which has to wait for another's look.

An account that sees everything above what is known may look, and publish after that. To any other, messages
of ours may be hidden that a restored backup does not know of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.store.visibility import ASKED
from worker.store.watermarks import KNOWN_TO

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Place:
    """The channel that archives go to, as one account sees it.

    ``visible_from``: None if it has to be asked. Up to ``known_to`` nothing of ours is unknown.
    ``is_awaited``: another account does not see everything above that, and waits for somebody's look.
    """

    channel_id: int
    title: str
    ref: ChannelRef
    can_post: bool
    visible_from: int | None
    member_since: int | None
    known_to: int
    is_awaited: bool


@dataclass(frozen=True, slots=True)
class Waiter:
    """An account that does not see enough of the channel that archives go to; ``looker`` is one that does."""

    account_id: int
    title: str
    telegram_id: int
    first: int
    looker: int | None

    @property
    def reason(self) -> str:
        """In words, without what to do about it."""
        return f"sees {self.title} only from message {self.first} on, and nobody has looked through it before"

    @property
    def remedy(self) -> str:
        """What has to happen before this account publishes there."""
        if self.looker is not None:
            return f"account {self.looker} does so as soon as a worker runs it: worker run"
        return (
            "let new members see its history, or log in an account that sees all of it; if nothing of this"
            f" fleet lies there before message {self.first}, run:"
            f" worker channels destination {self.telegram_id} --nothing-hidden"
        )


# SQL: memberships ``o`` of accounts that work and may post, but do not see everything above what is known.
_WAITING = f"o.can_read AND o.can_post AND o.visible_from > {KNOWN_TO} + 1"
_PLACE = text(f"""
    SELECT c.id, c.title, c.telegram_id, p.access_hash, m.can_post, m.member_since, {KNOWN_TO} AS known_to,
        CASE WHEN {ASKED} THEN m.visible_from END AS visible_from,
        EXISTS (SELECT FROM memberships o JOIN accounts a ON a.id = o.account_id AND a.state = 'ready'
                WHERE o.channel_id = c.id AND o.account_id <> :account AND {_WAITING}) AS is_awaited
    FROM channels c
    JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account AND m.can_read
    JOIN peers p ON p.account_id = :account AND p.telegram_id = c.telegram_id
    WHERE c.is_destination
""")
_WAITERS = text(f"""
    SELECT o.account_id, c.title, c.telegram_id, o.visible_from, (
        SELECT min(l.account_id) FROM memberships l
        JOIN accounts a ON a.id = l.account_id AND a.state = 'ready'
        WHERE l.channel_id = c.id AND l.can_read AND coalesce(l.visible_from, 0) <= {KNOWN_TO} + 1)
    FROM channels c JOIN memberships o ON o.channel_id = c.id
    JOIN accounts b ON b.id = o.account_id AND b.state = 'ready'
    WHERE c.is_destination AND {_WAITING} ORDER BY o.account_id
""")


async def place_of(database: Database, account_id: int) -> Place | None:
    """The channel that archives go to; None if there is none, or the account does not read it."""
    async with database.reading() as connection:
        row = (await connection.execute(_PLACE, {"account": account_id})).one_or_none()
        if row is None:
            return None
        return Place(
            row.id,
            row.title,
            ChannelRef(row.telegram_id, row.access_hash),
            row.can_post,
            row.visible_from,
            row.member_since,
            row.known_to,
            row.is_awaited,
        )


async def waiters(database: Database) -> list[Waiter]:
    """Accounts that publish nothing until another one has looked, or a person has vouched for the rest."""
    async with database.reading() as connection:
        return [Waiter(*row) for row in await connection.execute(_WAITERS)]
