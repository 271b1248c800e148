"""Where archives go: the channel that was chosen, and whether it takes any more at present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.errors import UserError
from worker.store.missing_packages import require_whole

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Destination:
    """The channel to publish to, as one account addresses it."""

    channel_id: int
    ref: ChannelRef
    title: str


async def has_destination(database: Database) -> bool:
    """Whether anybody has said where archives go."""
    async with database.reading() as connection:
        query = text("SELECT EXISTS (SELECT FROM channels WHERE is_destination)")
        return bool((await connection.execute(query)).scalar_one())


# Relies on package_parts_message_key. ``full_at`` is what Telegram said, on a database that knows less.
_DESTINATION = text("""
    SELECT c.id, c.telegram_id, c.title, p.access_hash, m.can_post, c.missing_since IS NOT NULL AS is_held,
        c.full_at, greatest(coalesce(c.full_at, 0), (
            SELECT coalesce(max(message_id), 0) FROM package_parts WHERE dest_channel_id = c.id)) AS newest
    FROM channels c
    LEFT JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account
    LEFT JOIN peers p ON p.account_id = :account AND p.telegram_id = c.telegram_id
    WHERE c.is_destination
""")
_FULL = text("UPDATE channels SET full_at = :newest WHERE id = :channel")


async def destination_of(database: Database, account_id: int, *, most_messages: int) -> Destination:
    """Where this account publishes; a channel that has come to so many messages takes no more."""
    async with database.reading() as connection:
        row = (await connection.execute(_DESTINATION, {"account": account_id})).one_or_none()
        if row is None:
            raise UserError(
                "no destination channel is set", remedy="run: worker channels destination CHANNEL"
            )
        if not row.can_post or row.access_hash is None:
            raise UserError(
                f"account {account_id} may not post in {row.title}",
                remedy="make it an administrator of that channel",
            )
        if row.is_held:
            await require_whole(connection, row.id)
    destination = Destination(row.id, ChannelRef(row.telegram_id, row.access_hash), row.title)
    if row.full_at is not None and row.newest < most_messages:
        await _note_full(database, row.id, None)
    await require_room(database, destination, row.newest, most_messages=most_messages, noted_at=row.full_at)
    return destination


async def require_room(
    database: Database,
    destination: Destination,
    newest: int,
    *,
    most_messages: int,
    noted_at: int | None = None,
) -> None:
    """Refuse a channel that has come to this message: a full one takes no more, or drops its oldest."""
    if newest >= most_messages:
        if newest != noted_at:
            await _note_full(database, destination.channel_id, newest)
        raise UserError(full_reason(destination.title, newest), remedy=CHOOSE_ANOTHER)


async def _note_full(database: Database, channel_id: int, newest: int | None) -> None:
    async with database.transaction("channels.full") as connection:
        await connection.execute(_FULL, {"channel": channel_id, "newest": newest})


CHOOSE_ANOTHER = (
    "run: worker channels destination CHANNEL with another one (what is here stays published), or raise"
    " fleet.destination_messages"
)


def full_reason(title: str, newest: int) -> str:
    """In words, without what to do about it."""
    return f"{title} is full: it has come to message {newest}"


async def full_destination(database: Database) -> tuple[str, int] | None:
    """The title of the channel that archives go to, and its newest message, if it takes no more."""
    async with database.reading() as connection:
        query = text("SELECT title, full_at FROM channels WHERE is_destination AND full_at IS NOT NULL")
        row = (await connection.execute(query)).one_or_none()
        return None if row is None else (row.title, row.full_at)
