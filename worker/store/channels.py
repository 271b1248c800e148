"""Channels: what accounts see, which are read, which one is written to, and how far each was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.errors import FenceLostError, UserError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import ChannelInfo
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Source:
    """A channel to read, as one account addresses it, and its cursor."""

    channel_id: int
    cursor_id: int
    ref: ChannelRef
    title: str
    last_message_id: int
    is_protected: bool
    allow_protected: bool

    def moved_to(self, message_id: int) -> Source:
        """The same source with its cursor moved."""
        return replace(self, last_message_id=message_id)


@dataclass(frozen=True, slots=True)
class Destination:
    """The channel to publish to, as one account addresses it."""

    channel_id: int
    ref: ChannelRef
    title: str


async def record_seen(database: Database, account_id: int, infos: list[ChannelInfo]) -> None:
    """Keep what an account sees: the channels, that it is in them, and how it addresses them."""
    async with database.transaction("channels.seen") as connection:
        # In one order for all: accounts that start together see the same channels in different orders.
        for info in sorted(infos, key=lambda info: info.ref.telegram_id):
            values = {
                "account": account_id,
                "telegram_id": info.ref.telegram_id,
                "access_hash": info.ref.access_hash,
                "title": info.title,
                "username": info.username,
                "kind": info.kind,
                "protected": info.is_protected,
                "can_post": info.can_post,
            }
            for statement in _SEEN:
                await connection.execute(statement, values)


_SEEN = (
    text("""
        INSERT INTO channels (telegram_id, title, username, kind, is_protected)
        VALUES (:telegram_id, :title, :username, :kind, :protected)
        ON CONFLICT (telegram_id) DO UPDATE SET title = excluded.title, username = excluded.username,
            kind = excluded.kind, is_protected = excluded.is_protected
    """),
    text("""
        INSERT INTO memberships (account_id, channel_id, can_post)
        SELECT :account, id, :can_post FROM channels WHERE telegram_id = :telegram_id
        ON CONFLICT (account_id, channel_id) DO UPDATE SET can_read = true, can_post = excluded.can_post,
            checked_at = fleet_now()
    """),
    text("""
        INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (:account, :telegram_id, :access_hash)
        ON CONFLICT (account_id, telegram_id) DO UPDATE SET access_hash = excluded.access_hash,
            updated_at = fleet_now()
    """),
)


async def make_source(database: Database, telegram_id: int) -> None:
    """Read this channel from now on."""
    async with database.transaction("channels.source") as connection:
        await _require_known(connection, telegram_id)
        await connection.execute(
            text("UPDATE channels SET is_source = true, is_enabled = true WHERE telegram_id = :telegram_id"),
            {"telegram_id": telegram_id},
        )
        await connection.execute(
            text("""
                INSERT INTO scan_cursors (channel_id) SELECT id FROM channels WHERE telegram_id = :telegram_id
                ON CONFLICT ON CONSTRAINT scan_cursors_source_key DO NOTHING
            """),
            {"telegram_id": telegram_id},
        )


async def make_destination(database: Database, telegram_id: int) -> None:
    """Publish to this channel from now on; what is elsewhere stays there."""
    async with database.transaction("channels.destination") as connection:
        await _require_known(connection, telegram_id)
        await connection.execute(text("UPDATE channels SET is_destination = false WHERE is_destination"))
        await connection.execute(
            text("UPDATE channels SET is_destination = true WHERE telegram_id = :telegram_id"),
            {"telegram_id": telegram_id},
        )


async def _require_known(connection: AsyncConnection, telegram_id: int) -> None:
    query = text("SELECT 1 FROM channels WHERE telegram_id = :telegram_id")
    if (await connection.execute(query, {"telegram_id": telegram_id})).one_or_none() is None:
        raise UserError(
            f"no account has seen a channel {telegram_id}", remedy="join it with an account first"
        )


async def sources_of(database: Database, account_id: int) -> list[Source]:
    """What this account can read, longest unread first."""
    async with database.reading() as connection:
        rows = await connection.execute(
            text("""
                SELECT c.id, cu.id AS cursor_id, c.telegram_id, p.access_hash, c.title, cu.last_message_id,
                       c.is_protected, c.allow_protected
                FROM channels c
                JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account AND m.can_read
                JOIN peers p ON p.account_id = m.account_id AND p.telegram_id = c.telegram_id
                JOIN scan_cursors cu ON cu.channel_id = c.id AND cu.account_id IS NULL
                WHERE c.is_source AND c.is_enabled
                ORDER BY cu.scanned_at NULLS FIRST, cu.id
            """),
            {"account": account_id},
        )
        return [
            Source(
                channel_id=row.id,
                cursor_id=row.cursor_id,
                ref=ChannelRef(row.telegram_id, row.access_hash),
                title=row.title,
                last_message_id=row.last_message_id,
                is_protected=row.is_protected,
                allow_protected=row.allow_protected,
            )
            for row in rows
        ]


async def channel_ref(database: Database, account_id: int, channel_id: int) -> ChannelRef:
    """How this account addresses a channel it is in."""
    async with database.reading() as connection:
        query = text("""
            SELECT p.telegram_id, p.access_hash FROM channels c
            JOIN peers p ON p.telegram_id = c.telegram_id AND p.account_id = :account WHERE c.id = :channel
        """)
        row = (await connection.execute(query, {"account": account_id, "channel": channel_id})).one_or_none()
    if row is None:
        raise UserError(f"account {account_id} cannot address channel {channel_id}", remedy="join it first")
    return ChannelRef(row.telegram_id, row.access_hash)


async def count_channels_of(database: Database, account_id: int) -> int:
    """How many channels this account is in."""
    async with database.reading() as connection:
        query = text("SELECT count(*) FROM memberships WHERE account_id = :account AND can_read")
        return int((await connection.execute(query, {"account": account_id})).scalar_one())


async def has_destination(database: Database) -> bool:
    """Whether anybody has said where archives go."""
    async with database.reading() as connection:
        query = text("SELECT EXISTS (SELECT FROM channels WHERE is_destination)")
        return bool((await connection.execute(query)).scalar_one())


async def destination_of(database: Database, account_id: int) -> Destination:
    """Where this account publishes."""
    async with database.reading() as connection:
        row = (
            await connection.execute(
                text("""
                    SELECT c.id, c.telegram_id, c.title, p.access_hash, m.can_post FROM channels c
                    LEFT JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account
                    LEFT JOIN peers p ON p.account_id = :account AND p.telegram_id = c.telegram_id
                    WHERE c.is_destination
                """),
                {"account": account_id},
            )
        ).one_or_none()
    if row is None:
        raise UserError("no destination channel is set", remedy="run: worker channels destination CHANNEL")
    if not row.can_post or row.access_hash is None:
        raise UserError(
            f"account {account_id} may not post in {row.title}",
            remedy="make it an administrator of that channel",
        )
    return Destination(row.id, ChannelRef(row.telegram_id, row.access_hash), row.title)


async def advance_cursor(connection: AsyncConnection, source: Source, to_message_id: int, seen: int) -> None:
    """Move the cursor, inside the transaction that keeps what lies behind it; only from where we read it."""
    result = await connection.execute(
        text("""
            UPDATE scan_cursors SET last_message_id = :to, messages_seen = messages_seen + :seen,
                scanned_at = fleet_now()
            WHERE id = :cursor AND last_message_id = :from
        """),
        {"to": to_message_id, "seen": seen, "cursor": source.cursor_id, "from": source.last_message_id},
    )
    if not result.rowcount:
        raise FenceLostError(f"another account is reading {source.title}")


async def note_read_to_end(database: Database, source: Source) -> None:
    """Say that there was nothing above the cursor, unless another account has moved it since."""
    async with database.transaction("channels.read_to_end") as connection:
        await connection.execute(
            text("""
                UPDATE scan_cursors SET newest_message_id = last_message_id, scanned_at = fleet_now()
                WHERE id = :cursor AND last_message_id = :last
            """),
            {"cursor": source.cursor_id, "last": source.last_message_id},
        )


async def channel_titles(database: Database, channel_ids: list[int]) -> dict[int, str]:
    """What these channels are called."""
    async with database.reading() as connection:
        query = text("SELECT id, title FROM channels WHERE id = ANY(:ids)")
        return {row.id: row.title for row in await connection.execute(query, {"ids": channel_ids})}
