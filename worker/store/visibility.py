"""How much of a channel an account may see. What it may not see looks to it as if it were gone.

``memberships.visible_from`` is 0 for the whole history, the id of the first visible message for a part of it,
and NULL while nobody has asked. It says what an account may try. Conclusions from what it does not find are
drawn only while ``member_since`` says since when it is in the channel: that is forgotten with every
connection and every change of the membership, until Telegram is asked again. Broadcast channels show all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import ChannelRef

if TYPE_CHECKING:
    from worker.domain.telegram import Visibility
    from worker.store.database import Database

# SQL: whether Telegram was asked how much the membership ``m`` of channel ``c`` shows, and that still holds.
ASKED = "(m.visible_from IS NOT NULL AND (c.kind = 'channel' OR m.member_since IS NOT NULL))"


def sees_set(set_id: str) -> str:
    """SQL: whether the membership ``m`` shows every file of this set."""
    return f"""(m.visible_from = 0 OR m.visible_from > 0 AND NOT EXISTS (
        SELECT FROM source_files seen WHERE seen.set_id = {set_id} AND seen.message_id < m.visible_from))"""


def sees_message(channel_id: str, message_id: str) -> str:
    """SQL: whether ``:account`` is known to see the place of this message: to others it only looks gone."""
    return f"""EXISTS (SELECT FROM memberships m JOIN channels c ON c.id = m.channel_id
        WHERE m.account_id = :account AND m.channel_id = {channel_id} AND m.can_read
          AND {ASKED} AND m.visible_from <= {message_id})"""


def may_see_from(message_id: str) -> str:
    """SQL: whether the membership ``m`` of channel ``c`` shows all from this message on, or may.

    What the account could not address, it cannot be asked about.
    """
    return f"""(coalesce(m.visible_from, 0) <= {message_id} AND EXISTS (
        SELECT FROM peers t WHERE t.account_id = m.account_id AND t.telegram_id = c.telegram_id))"""


MAY_SEE_ALL = may_see_from("0")
_UNASKED = text(f"""
    SELECT c.id, c.telegram_id, p.access_hash FROM channels c
    JOIN memberships m ON m.channel_id = c.id AND m.account_id = :account AND m.can_read
    JOIN peers p ON p.account_id = :account AND p.telegram_id = c.telegram_id
    WHERE NOT {ASKED} AND (c.is_destination OR c.id IN (SELECT dest_channel_id FROM packages)
        OR c.id IN (SELECT destination_id FROM uploads))
""")


async def unasked_destinations(database: Database, account_id: int) -> list[tuple[int, ChannelRef]]:
    """Channels with packages, or for them, of which it is not known how much this account sees."""
    async with database.reading() as connection:
        rows = await connection.execute(_UNASKED, {"account": account_id})
        return [(row.id, ChannelRef(row.telegram_id, row.access_hash)) for row in rows]


async def note_visibility(
    database: Database, account_id: int, channel_id: int, visibility: Visibility
) -> None:
    """What Telegram has answered just now about how much of the channel the account may see."""
    async with database.transaction("memberships.visibility") as connection:
        await connection.execute(
            text("""
                UPDATE memberships SET visible_from = :first, member_since = :since
                WHERE account_id = :account AND channel_id = :channel
            """),
            {
                "account": account_id,
                "channel": channel_id,
                "first": visibility.first,
                "since": visibility.member_since,
            },
        )


async def forget_visibility(database: Database, account_id: int, channel_id: int) -> None:
    """The membership has changed: nothing is concluded, and no set claimed, until Telegram is asked again."""
    async with database.transaction("memberships.unseen") as connection:
        await connection.execute(
            text("""
                UPDATE memberships SET visible_from = NULL, member_since = NULL
                WHERE account_id = :account AND channel_id = :channel
            """),
            {"account": account_id, "channel": channel_id},
        )
