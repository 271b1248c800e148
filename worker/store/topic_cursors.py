"""How far each topic of a forum was read; the forum's own row says who reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.cursors import require_hold, start_of

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
        newest_message_id = greatest(cu.newest_message_id, excluded.newest_message_id)
""")
_TOPICS = text("""
    SELECT id, topic_id, topic_title, last_message_id, newest_message_id, reread_at, reread_to
    FROM scan_cursors
    WHERE channel_id = :channel AND topic_id > 0 AND account_id IS NOT DISTINCT FROM :owner
      AND (last_message_id < newest_message_id OR reread_at < reread_to)
    ORDER BY scanned_at NULLS FIRST, topic_id
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
