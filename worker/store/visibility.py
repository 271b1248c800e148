"""How much of a channel an account may see. What it may not see looks to it as if it were gone.

``memberships.visible_from`` is 0 for the whole history, the id of the first visible message for a part of it,
and NULL while nobody has asked: then nothing may be concluded from what the account does not find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef

if TYPE_CHECKING:
    from worker.store.database import Database


def sees_set(set_id: str) -> str:
    """SQL: whether the membership ``m`` shows every file of this set."""
    return f"""(m.visible_from = 0 OR m.visible_from > 0 AND NOT EXISTS (
        SELECT FROM source_files seen WHERE seen.set_id = {set_id} AND seen.message_id < m.visible_from))"""


_UNASKED = text("""
    SELECT c.id, c.telegram_id, p.access_hash FROM channels c
    JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account AND m.can_read
    JOIN peers p ON p.account_id = :account AND p.telegram_id = c.telegram_id
    WHERE m.visible_from IS NULL AND (c.is_destination OR c.id IN (SELECT dest_channel_id FROM packages)
        OR c.id IN (SELECT destination_id FROM uploads))
""")


async def unasked_destinations(database: Database, account_id: int) -> list[tuple[int, ChannelRef]]:
    """Channels with packages, or for them, of which it is not known how much this account sees."""
    async with database.reading() as connection:
        rows = await connection.execute(_UNASKED, {"account": account_id})
        return [(row.id, ChannelRef(row.telegram_id, row.access_hash)) for row in rows]


async def note_visibility(database: Database, account_id: int, channel_id: int, first_message: int) -> None:
    """The oldest message of the channel that the account may see; 0: all of them."""
    async with database.transaction("memberships.visibility") as connection:
        await connection.execute(
            text("""
                UPDATE memberships SET visible_from = :first
                WHERE account_id = :account AND channel_id = :channel
            """),
            {"account": account_id, "channel": channel_id, "first": first_message},
        )
