"""File messages seen in sources, and the sets they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.domain.telegram import Message
    from worker.store.channels import Source


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file message. ``format`` is set if it is an archive by itself; others wait to be grouped."""

    message: Message
    format: str | None
    skip_reason: str | None


_INSERT_FILE = text("""
    INSERT INTO source_files (channel_id, topic_id, message_id, document_id, file_name, size, mime_type,
        caption, poster_id, album_id, reply_to, is_protected, posted_at)
    VALUES (:channel, :topic, :message, :document, :name, :size, :mime,
        :caption, :poster, :album, :reply, :protected, :posted)
    ON CONFLICT (channel_id, message_id) DO NOTHING RETURNING id
""")
_INSERT_SET = text("""
    WITH made AS (
        INSERT INTO archive_sets (channel_id, topic_id, name, format, state, reason, part_count, total_size,
            lead_document_id, posted_at)
        VALUES (:channel, :topic, :name, :format, :state, :reason, 1, :size, :document, :posted)
        RETURNING id
    )
    UPDATE source_files SET set_id = made.id, part_number = 0 FROM made WHERE source_files.id = :file
""")


async def keep_found(connection: AsyncConnection, source: Source, found: list[FoundFile]) -> int:
    """Write a row for every file, inside the scan's transaction; how many new sets came of them.

    What is known already stays as it is.
    """
    kept = 0
    for item in found:
        message, document = item.message, item.message.document
        assert document is not None, "only file messages are found"
        values = {
            "channel": source.channel_id,
            "topic": message.topic_id,
            "message": message.message_id,
            "document": document.document_id,
            "name": document.file_name,
            "size": document.size,
            "mime": document.mime_type,
            "caption": message.text,
            "poster": message.poster_id,
            "album": message.album_id,
            "reply": message.reply_to,
            "protected": message.is_protected,
            "posted": message.date,
        }
        file_id = (await connection.execute(_INSERT_FILE, values)).scalar_one_or_none()
        if file_id is None or item.format is None:
            continue
        state = "skipped" if item.skip_reason else "ready"
        made = {"format": item.format, "state": state, "reason": item.skip_reason, "file": file_id}
        await connection.execute(_INSERT_SET, {**values, **made})
        kept += 1
    return kept
