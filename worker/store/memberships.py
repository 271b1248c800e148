"""What an account turned out not to be allowed to do, so that others are asked instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database

_READERS = text("""
    SELECT count(*) FROM memberships m JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
    WHERE m.channel_id = :channel AND m.can_read
""")


async def lost_reading(database: Database, account_id: int, channel_id: int) -> int:
    """This account can no longer read the channel; how many others still can."""
    async with database.transaction("memberships.reading") as connection:
        await connection.execute(
            text("""
                UPDATE memberships SET can_read = false, checked_at = fleet_now()
                WHERE account_id = :account AND channel_id = :channel
            """),
            {"account": account_id, "channel": channel_id},
        )
        readers: int = (await connection.execute(_READERS, {"channel": channel_id})).scalar_one()
        return readers


async def lost_posting(database: Database, account_id: int) -> None:
    """This account may no longer post where archives go."""
    async with database.transaction("memberships.posting") as connection:
        await connection.execute(
            text("""
                UPDATE memberships m SET can_post = false, checked_at = fleet_now() FROM channels c
                WHERE m.account_id = :account AND c.id = m.channel_id AND c.is_destination
            """),
            {"account": account_id},
        )
