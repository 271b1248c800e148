"""What is posted in channels, and what becomes of it there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import Vector

from worker.sandbox import media, news
from worker.sandbox.admin.commands import account_of, command
from worker.sandbox.handlers.forum import ICON_COLOR
from worker.sandbox.ledger.database import new_id

if TYPE_CHECKING:
    from worker.sandbox.ledger.rows import Message
    from worker.sandbox.render import View
    from worker.sandbox.server import Sandbox


def _post(sandbox: Sandbox, channel_id: int, by: str | None, **columns: Any) -> Message:
    channel = sandbox.ledger.channels.need(channel_id)
    author = channel.creator if by is None else account_of(sandbox, by).user_id
    message, pts = sandbox.ledger.messages.add(channel_id, author, **columns)

    def make(view: View) -> Any:
        return news.bundle(view, [news.new_message(view, message, pts)], [message])

    news.announce(sandbox, channel_id, make)
    return message


def _edit(sandbox: Sandbox, message: Message, **columns: Any) -> None:
    edited, pts = sandbox.ledger.messages.edit(message, **columns)

    def make(view: View) -> Any:
        return news.bundle(view, [news.edited_message(view, edited, pts)], [edited])

    news.announce(sandbox, message.box, make)


@command
async def post_text(
    sandbox: Sandbox, channel_id: int, text: str, *, by: str | None = None, topic_id: int | None = None
) -> dict[str, Any]:
    return {"message_id": _post(sandbox, channel_id, by, text=text, topic_id=topic_id).id}


@command
async def post_document(
    sandbox: Sandbox,
    channel_id: int,
    path: str,
    file_name: str,
    *,
    caption: str = "",
    mime: str = "application/zip",
    by: str | None = None,
    topic_id: int | None = None,
    reply_to: int | None = None,
    grouped_id: int | None = None,
    photo: bool = False,
    dc_id: int | None = None,
) -> dict[str, Any]:
    document_id = new_id()
    size = await asyncio.to_thread(sandbox.ledger.blobs.adopt, Path(path), document_id)
    attributes = [] if photo else [raw.types.DocumentAttributeFilename(file_name=file_name)]
    document = sandbox.ledger.documents.add(
        document_id,
        kind="photo" if photo else media.kind_of(attributes),
        mime="image/jpeg" if photo else mime,
        size=size,
        file_name=file_name,
        attributes=bytes(Vector(attributes)),
        dc_id=dc_id or sandbox.options.dc_id,
    )
    message = _post(
        sandbox,
        channel_id,
        by,
        text=caption,
        document_id=document_id,
        kind=document.kind,
        topic_id=topic_id,
        reply_to=reply_to,
        grouped_id=grouped_id,
    )
    return {"message_id": message.id, "document_id": document_id}


@command
async def repost(
    sandbox: Sandbox, channel_id: int, document_id: int, *, caption: str = "", by: str | None = None
) -> dict[str, Any]:
    """Post a document that exists already, as a forward without its author does."""
    document = sandbox.ledger.documents.get(document_id)
    if document is None:
        raise ValueError(f"there is no document {document_id}")
    message = _post(sandbox, channel_id, by, text=caption, document_id=document_id, kind=document.kind)
    return {"message_id": message.id, "document_id": document_id}


@command
async def replace_document(sandbox: Sandbox, channel_id: int, message_id: int, document_id: int) -> None:
    """Edit a message: it shows another document from now on, one that exists already."""
    message = sandbox.ledger.messages.get(channel_id, message_id)
    document = sandbox.ledger.documents.get(document_id)
    if message is None or document is None:
        raise ValueError(f"there is no message {message_id}, or no document {document_id}")
    _edit(sandbox, message, document_id=document_id, kind=document.kind)


@command
async def edit_caption(sandbox: Sandbox, channel_id: int, message_id: int, caption: str) -> None:
    """Edit a message's text, as any administrator of a channel may."""
    message = sandbox.ledger.messages.get(channel_id, message_id)
    if message is None:
        raise ValueError(f"there is no message {message_id}")
    _edit(sandbox, message, text=caption)


@command
async def delete_messages(sandbox: Sandbox, channel_id: int, ids: list[int]) -> dict[str, Any]:
    gone, pts = sandbox.ledger.messages.delete(channel_id, ids)
    if gone:
        item = news.deleted_messages(channel_id, gone, pts)
        news.announce(sandbox, channel_id, lambda _: news.updates([item], [], []))
    return {"deleted": gone}


@command
async def hide_from_search(sandbox: Sandbox, channel_id: int, ids: list[int]) -> None:
    sandbox.ledger.messages.hide_from_search(channel_id, ids)


@command
async def create_topic(sandbox: Sandbox, channel_id: int, title: str) -> dict[str, Any]:
    channel = sandbox.ledger.channels.need(channel_id)
    action = raw.types.MessageActionTopicCreate(title=title, icon_color=ICON_COLOR)
    message, _ = sandbox.ledger.messages.add(
        channel_id, channel.creator, opens_topic=True, action=action.write(), kind="service"
    )
    sandbox.ledger.channels.add_topic(channel_id, message.id, title, ICON_COLOR, channel.creator)
    return {"topic_id": message.id}


@command
async def protect_message(
    sandbox: Sandbox, channel_id: int, message_id: int, *, protected: bool = True
) -> None:
    """Forbid carrying this message's content elsewhere, or allow it again."""
    message = sandbox.ledger.messages.get(channel_id, message_id)
    if message is None:
        raise ValueError(f"there is no message {message_id}")
    _edit(sandbox, message, noforwards=int(protected))
