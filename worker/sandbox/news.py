"""Telling others: updates pushed to every session that is to hear of a change."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.render import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sandbox.ledger.rows import Message
    from worker.sandbox.server import Sandbox
    from worker.sandbox.session import Session


def updates(items: list[Any], users: list[Any], chats: list[Any]) -> Any:
    return raw.types.Updates(updates=items, users=users, chats=chats, date=int(time.time()), seq=0)


def new_message(view: View, message: Message, pts: int, pts_count: int = 1) -> Any:
    """The update that brings one message."""
    kind = raw.types.UpdateNewChannelMessage if message.box > 0 else raw.types.UpdateNewMessage
    return kind(message=view.message(message), pts=pts, pts_count=pts_count)


def edited_message(view: View, message: Message, pts: int) -> Any:
    kind = raw.types.UpdateEditChannelMessage if message.box > 0 else raw.types.UpdateEditMessage
    return kind(message=view.message(message), pts=pts, pts_count=1)


def deleted_messages(box: int, ids: list[int], pts: int) -> Any:
    if box > 0:
        return raw.types.UpdateDeleteChannelMessages(
            channel_id=box, messages=ids, pts=pts, pts_count=len(ids)
        )
    return raw.types.UpdateDeleteMessages(messages=ids, pts=pts, pts_count=len(ids))


def bundle(view: View, items: list[Any], messages: list[Message]) -> Any:
    """Updates with everything a client needs to understand the messages in them."""
    return updates(items, view.authors_of(messages), view.chats_of(messages))


def announce(
    sandbox: Sandbox, box: int, make: Callable[[View], Any], *, besides: Session | None = None
) -> None:
    """Push to every member of a channel (or the owner of a private box) but the session that caused it."""
    members = sandbox.ledger.channels.members(box) if box > 0 else []
    audience = [member.user_id for member in members] if box > 0 else [-box]
    for user_id in audience:
        account = sandbox.ledger.accounts.get(user_id)
        if account is None:
            continue
        body = None
        for session in sandbox.sessions_of(user_id):
            if session is besides:
                continue
            body = body or make(View(sandbox, account))
            session.push(sandbox.encode(body, session.layer))
