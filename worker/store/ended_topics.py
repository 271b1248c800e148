"""A group that was a forum: what was not read of its topics is left to the cursor of the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

# The forum's own cursor says how far all topics were read, but for those that could not be.
_END_TOPICS = text("""
    WITH ended AS (
        UPDATE scan_cursors t SET last_message_id = t.newest_message_id, reread_at = t.reread_to,
            unreadable = NULL
        FROM scan_cursors before
        WHERE t.id = before.id AND t.channel_id = :channel AND t.topic_id > 0
          AND t.account_id IS NOT DISTINCT FROM :owner
          AND (t.last_message_id < t.newest_message_id OR t.reread_at < t.reread_to)
        RETURNING CASE WHEN before.reread_at < before.reread_to
            THEN least(before.reread_at, before.last_message_id) ELSE before.last_message_id END AS unread
    )
    UPDATE scan_cursors cu SET reread_to = cu.last_message_id,
        reread_at = CASE WHEN cu.reread_at < cu.reread_to THEN least(cu.reread_at, u.unread) ELSE u.unread END
    FROM (SELECT min(unread) AS unread FROM ended) u WHERE cu.id = :held AND u.unread IS NOT NULL
    RETURNING cu.reread_at, cu.reread_to
""")


async def end_topics(
    connection: AsyncConnection, channel_id: int, owner: int | None, held_id: int
) -> tuple[int, int] | None:
    """Have the group read again from where the first of its topics stood; that span, if there is one."""
    values = {"channel": channel_id, "owner": owner, "held": held_id}
    row = (await connection.execute(_END_TOPICS, values)).one_or_none()
    return None if row is None else (row.reread_at, row.reread_to)
