"""Channels: what accounts see, which are read, and which one is written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef
from worker.errors import UserError
from worker.store.protection import apply_protection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import ChannelInfo
    from worker.store.database import Database


async def record_seen(
    database: Database, account_id: int, infos: Sequence[ChannelInfo], *, connecting: bool = False
) -> None:
    """Keep what an account sees: the channels, that it is in them, and how it addresses them.

    ``infos`` are all of its channels: it is in no other any more. ``connecting``: how much it sees of each
    has to be asked anew, since nobody knows what has happened to it meanwhile.
    """
    async with database.transaction("channels.seen") as connection:
        await _record(connection, account_id, infos)
        if connecting:
            await connection.execute(_UNASKED, {"account": account_id})
        values = {"account": account_id, "seen": [info.ref.telegram_id for info in infos]}
        await connection.execute(_UNSEEN, values)


async def record_joined(database: Database, account_id: int, info: ChannelInfo) -> None:
    """Keep that an account is in this channel, among others."""
    async with database.transaction("channels.joined") as connection:
        await _record(connection, account_id, [info])


async def _record(connection: AsyncConnection, account_id: int, infos: Sequence[ChannelInfo]) -> None:
    ids = [info.ref.telegram_id for info in infos]
    before = {
        row.telegram_id: row.is_protected for row in await connection.execute(_PROTECTION, {"ids": ids})
    }
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
            "since": info.member_since,
        }
        for statement in _SEEN:
            await connection.execute(statement, values)
        if before.get(info.ref.telegram_id, info.is_protected) != info.is_protected:
            await apply_protection(connection, info.ref.telegram_id)


async def seen_long_ago(database: Database, account_id: int, seconds: float) -> bool:
    """Whether the account's list of channels was read longer ago than this, or never."""
    async with database.reading() as connection:
        return bool(
            (await connection.execute(_SEEN_LONG_AGO, {"account": account_id, "old": seconds})).scalar()
        )


_PROTECTION = text("SELECT telegram_id, is_protected FROM channels WHERE telegram_id = ANY(:ids)")
_UNSEEN = text("""
    UPDATE memberships m SET can_read = false, can_post = false, checked_at = fleet_now() FROM channels c
    WHERE m.account_id = :account AND c.id = m.channel_id AND c.telegram_id <> ALL (CAST(:seen AS bigint[]))
      AND (m.can_read OR m.can_post)
""")
_UNASKED = text("UPDATE memberships SET member_since = NULL WHERE account_id = :account")
_SAME_MEMBERSHIP = """
    memberships.can_read AND coalesce(memberships.member_since = CAST(:since AS bigint), true)
"""
# A time that lies ahead was written before the clock stepped back.
_SEEN_LONG_AGO = text("""
    SELECT coalesce(
        max(checked_at) NOT BETWEEN fleet_now() - :old * interval '1 second' AND fleet_now(), true)
    FROM memberships WHERE account_id = :account
""")
_SEEN = (
    text("""
        INSERT INTO channels (telegram_id, title, username, kind, is_protected)
        VALUES (:telegram_id, :title, :username, :kind, :protected)
        ON CONFLICT (telegram_id) DO UPDATE SET title = excluded.title, username = excluded.username,
            kind = excluded.kind, is_protected = excluded.is_protected
    """),
    text(f"""
        INSERT INTO memberships (account_id, channel_id, can_post, visible_from)
        SELECT :account, id, :can_post, CASE WHEN kind = 'channel' THEN 0 END
        FROM channels WHERE telegram_id = :telegram_id
        ON CONFLICT (account_id, channel_id) DO UPDATE SET can_read = true, can_post = excluded.can_post,
            checked_at = fleet_now(),
            visible_from = CASE WHEN {_SAME_MEMBERSHIP} THEN memberships.visible_from END,
            member_since = CASE WHEN {_SAME_MEMBERSHIP} THEN memberships.member_since END
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
        if await _role(connection, telegram_id) == "destination":
            raise UserError(
                f"channel {telegram_id} is where archives go", remedy="choose another destination first"
            )
        await connection.execute(
            text("UPDATE channels SET is_source = true, is_enabled = true WHERE telegram_id = :telegram_id"),
            {"telegram_id": telegram_id},
        )


async def make_destination(database: Database, telegram_id: int) -> None:
    """Publish to this channel from now on; what is elsewhere stays there."""
    async with database.transaction("channels.destination") as connection:
        if await _role(connection, telegram_id) == "source":
            raise UserError(
                f"channel {telegram_id} is read as a source", remedy="run: worker channels remove CHANNEL"
            )
        await connection.execute(text("UPDATE channels SET is_destination = false WHERE is_destination"))
        await connection.execute(
            text("UPDATE channels SET is_destination = true WHERE telegram_id = :telegram_id"),
            {"telegram_id": telegram_id},
        )


async def _role(connection: AsyncConnection, telegram_id: int) -> str:
    query = text("SELECT is_source, is_destination FROM channels WHERE telegram_id = :id")
    row = (await connection.execute(query, {"id": telegram_id})).one_or_none()
    if row is None:
        raise UserError(
            f"no account has seen a channel {telegram_id}", remedy="join it with an account first"
        )
    return "destination" if row.is_destination else "source" if row.is_source else ""


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


async def names_senders(database: Database, channel_id: int) -> bool:
    """Whether messages there say who posted them: in a group they do, in a channel they are the channel's."""
    async with database.reading() as connection:
        query = text("SELECT kind <> 'channel' FROM channels WHERE id = :channel")
        return bool((await connection.execute(query, {"channel": channel_id})).scalar_one())


async def count_channels_of(database: Database, account_id: int) -> int:
    """How many channels this account is in."""
    async with database.reading() as connection:
        query = text("SELECT count(*) FROM memberships WHERE account_id = :account AND can_read")
        return int((await connection.execute(query, {"account": account_id})).scalar_one())


async def channel_titles(database: Database, channel_ids: list[int]) -> dict[int, str]:
    """What these channels are called."""
    async with database.reading() as connection:
        query = text("SELECT id, title FROM channels WHERE id = ANY(:ids)")
        return {row.id: row.title for row in await connection.execute(query, {"ids": channel_ids})}
