"""Telling the server what was read. Nothing here is shown to anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.handlers.registry import handles
from worker.sandbox.peers import readable
from worker.sandbox.tl import boolean

if TYPE_CHECKING:
    from worker.sandbox.call import Call


@handles(raw.functions.channels.ReadHistory)
async def read_channel(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    call.ledger.channels.set_read(place.box, call.me.user_id, query.max_id)
    return boolean(True)


@handles(raw.functions.messages.ReadHistory)
async def read_private(call: Call, query: Any) -> Any:
    place = readable(call, query.peer)
    return raw.types.messages.AffectedMessages(pts=call.ledger.messages.pts(place.box), pts_count=0)


@handles(raw.functions.messages.ReadDiscussion, raw.functions.messages.SetTyping)
async def nothing_to_keep(call: Call, query: Any) -> Any:
    readable(call, query.peer)
    return boolean(True)


@handles(raw.functions.messages.GetMessagesViews)
async def get_messages_views(call: Call, query: Any) -> Any:
    readable(call, query.peer)
    views = [raw.types.MessageViews(views=1, forwards=0) for _ in query.id]
    return raw.types.messages.MessageViews(views=views, chats=[], users=[])
