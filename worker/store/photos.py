"""Photos that were posted in sources, kept by where and when, since one may show what a set holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlalchemy import text

from worker.domain.preview_choice import PostedPhoto

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.archive_set import ArchiveSet
    from worker.domain.telegram import Message
    from worker.store.database import Database

# Photos of one posting stand close to its files; so many messages away from them nobody looks. Parts may lie
# years apart, as when one answers another: what lies between them is not looked at, nor endless answers.
_NEAR = 200
_MOST_PARTS = 20
_MOST_PHOTOS = 2_000

_KEEP = text("""
    INSERT INTO source_photos (channel_id, message_id, topic_id, poster_id, album_id, reply_to, caption,
        posted_at)
    VALUES (:channel, :message, :topic, :poster, :album, :reply, :caption, :posted)
    ON CONFLICT (channel_id, message_id) DO UPDATE SET caption = excluded.caption
""")
# Relies on the primary key for what is near and on source_photos_replies for the rest.
_CANDIDATES = text(f"""
    SELECT message_id, CAST(extract(epoch FROM posted_at) AS bigint), poster_id, album_id, reply_to, topic_id,
        caption
    FROM source_photos WHERE channel_id = :channel AND message_id IN (
        (SELECT near.message_id FROM unnest(CAST(:places AS integer[])) AS part (id) JOIN source_photos near
            ON near.channel_id = :channel AND near.message_id BETWEEN part.id - {_NEAR} AND part.id + {_NEAR})
        UNION
        (SELECT message_id FROM source_photos
         WHERE channel_id = :channel AND reply_to = ANY(CAST(:parts AS integer[]))
         ORDER BY message_id LIMIT {_MOST_PHOTOS})
        UNION
        SELECT unnest(CAST(:answered AS integer[])))
""")


class Origin(Protocol):
    """The channel in which messages were posted."""

    @property
    def channel_id(self) -> int:
        """The channel's number here."""
        ...

    @property
    def title(self) -> str:
        """What the log calls it."""
        ...


async def keep_photos(connection: AsyncConnection, source: Origin, messages: Iterable[Message | int]) -> int:
    """Write down the photos of a page, inside the scan's transaction; how many there were."""
    rows = [
        {
            "channel": source.channel_id,
            "message": message.message_id,
            "topic": message.topic_id,
            "poster": message.poster_id,
            "album": message.album_id,
            "reply": message.reply_to,
            "caption": message.text,
            "posted": message.date,
        }
        for message in messages
        if not isinstance(message, int) and message.photo is not None
    ]
    if rows:
        await connection.execute(_KEEP, rows)
    return len(rows)


async def photos_near(database: Database, channel_id: int, found: ArchiveSet) -> Sequence[PostedPhoto]:
    """The photos that may have been posted for this set."""
    ids = [part.message_id for part in found.parts]
    values = {
        "channel": channel_id,
        "places": [*ids[:_MOST_PARTS], *ids[_MOST_PARTS:][-_MOST_PARTS:]],
        "parts": ids,
        "answered": [part.reply_to for part in found.parts if part.reply_to is not None],
    }
    async with database.reading() as connection:
        return [PostedPhoto(*row) for row in await connection.execute(_CANDIDATES, values)]
