"""How far each topic of a forum was read; the forum's own row says who reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.telegram import GENERAL
from worker.store.cursors import TO_READ, require_hold, start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.telegram import Topic
    from worker.store.cursors import Source
    from worker.store.database import Database

_KEEP_TOPIC = text("""
    INSERT INTO scan_cursors AS cu (channel_id, topic_id, account_id, topic_title, last_message_id,
        newest_message_id)
    VALUES (:channel, :topic, :owner, :title, :last, :top)
    ON CONFLICT ON CONSTRAINT scan_cursors_source_key DO UPDATE SET topic_title = excluded.topic_title,
        newest_message_id = greatest(cu.newest_message_id, excluded.newest_message_id),
        unreadable = CASE WHEN excluded.newest_message_id <= cu.newest_message_id THEN cu.unreadable END
""")
# A group that became a forum: all that was posted in it until then is in General. What the group had to read
# once more is General's from here on, beside such a span of its own.
_HAND_OVER = text(f"""
    WITH of_group AS (
        UPDATE scan_cursors cu SET reread_at = cu.reread_to FROM scan_cursors before
        WHERE cu.id = :held AND before.id = cu.id AND cu.reread_at < cu.reread_to
        RETURNING before.reread_at, before.reread_to, before.last_message_id
    )
    INSERT INTO scan_cursors AS cu (channel_id, topic_id, account_id, topic_title, last_message_id,
        newest_message_id, reread_at, reread_to)
    SELECT :channel, {GENERAL}, :owner, 'General', last_message_id, last_message_id, reread_at, reread_to
    FROM of_group
    ON CONFLICT ON CONSTRAINT scan_cursors_source_key DO UPDATE SET
        reread_to = greatest(cu.reread_to, excluded.reread_to),
        reread_at = CASE WHEN cu.reread_at < cu.reread_to THEN least(cu.reread_at, excluded.reread_at)
            ELSE excluded.reread_at END
""")
_TOPICS = text(f"""
    SELECT id, topic_id, topic_title, last_message_id, newest_message_id, reread_at, reread_to
    FROM scan_cursors t
    WHERE channel_id = :channel AND topic_id > 0 AND account_id IS NOT DISTINCT FROM :owner
      AND {TO_READ} ORDER BY scanned_at NULLS FIRST, topic_id
""")
_SETTLE = text("""
    UPDATE scan_cursors SET unreadable = :reason, scanned_at = fleet_now() WHERE id = :cursor
""")
_POSTPONE = text("UPDATE scan_cursors SET scanned_at = fleet_now() WHERE id = :cursor")
_UNREADABLE = text("""
    SELECT c.title, t.topic_title, min(t.unreadable) FROM scan_cursors t
    JOIN channels c ON c.id = t.channel_id AND c.is_source AND c.is_enabled
    WHERE t.unreadable IS NOT NULL GROUP BY c.id, t.topic_id, t.topic_title
    ORDER BY c.id, t.topic_id LIMIT :limit
""")


async def keep_topics(database: Database, forum: Source, topics: Sequence[Topic]) -> list[Source]:
    """Note the topics in which something happened; every topic of the forum that is not read to its end."""
    owner = None if forum.sees_all else forum.account_id
    async with database.transaction("cursors.topics") as connection:
        await require_hold(connection, forum)
        for topic in topics:
            values = {
                "channel": forum.channel_id,
                "topic": topic.topic_id,
                "owner": owner,
                "title": topic.title,
                "last": min(forum.last_message_id, topic.top_message),
                "top": topic.top_message,
            }
            await connection.execute(_KEEP_TOPIC, values)
        values = {"channel": forum.channel_id, "owner": owner, "held": forum.held_id}
        await connection.execute(_HAND_OVER, values)
        rows = (await connection.execute(_TOPICS, {"channel": forum.channel_id, "owner": owner})).all()
    return [
        replace(
            forum,
            cursor_id=row.id,
            topic_id=row.topic_id,
            title=f"{forum.title} / {row.topic_title}",
            last_message_id=row.last_message_id,
            newest_message_id=row.newest_message_id,
            position=start_of(row.last_message_id),
            reread_at=row.reread_at,
            reread_to=row.reread_to,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """A topic that Telegram refuses to show, and in which words."""

    channel: str
    title: str
    reason: str


async def settle_unreadable(database: Database, topic: Source, reason: str) -> None:
    """Telegram refuses this topic: the others go on without it.

    It is tried again when something comes up in it, and from time to time; where its reading stood is kept.
    """
    async with database.transaction("cursors.unreadable") as connection:
        await require_hold(connection, topic)
        await connection.execute(_SETTLE, {"cursor": topic.cursor_id, "reason": reason})


async def read_others_first(database: Database, topic: Source) -> None:
    """Something came in the way of this topic: whatever it is, the next scan begins with the others."""
    async with database.transaction("cursors.postpone") as connection:
        await require_hold(connection, topic)
        await connection.execute(_POSTPONE, {"cursor": topic.cursor_id})


async def unreadable_topics(database: Database, limit: int = 10) -> list[UnreadableTopic]:
    """Topics that nobody can read at present."""
    async with database.reading() as connection:
        rows = await connection.execute(_UNREADABLE, {"limit": limit})
        return [UnreadableTopic(*row) for row in rows]
