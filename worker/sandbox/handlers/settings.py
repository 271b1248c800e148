"""What an administrator may change about a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.channels import changed
from worker.sandbox.handlers.forum import ICON_COLOR
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.channels import GENERAL_TOPIC
from worker.sandbox.peers import administered, readable
from worker.sandbox.tl import boolean

if TYPE_CHECKING:
    from worker.sandbox.call import Call


def _change(call: Call, named: Any, **values: object) -> Any:
    place = administered(call, named)
    assert place.channel is not None
    call.ledger.channels.change(place.box, **values)
    return changed(call, place.channel)


@handles(raw.functions.channels.EditTitle)
async def edit_title(call: Call, query: Any) -> Any:
    if not query.title.strip():
        raise RpcFault(400, "CHAT_TITLE_EMPTY")
    return _change(call, query.channel, title=query.title)


@handles(raw.functions.messages.EditChatAbout)
async def edit_about(call: Call, query: Any) -> Any:
    _change(call, query.peer, about=query.about)
    return boolean(True)


@handles(raw.functions.messages.ToggleNoForwards)
async def toggle_noforwards(call: Call, query: Any) -> Any:
    return _change(call, query.peer, noforwards=int(query.enabled))


@handles(raw.functions.channels.TogglePreHistoryHidden)
async def toggle_hidden_history(call: Call, query: Any) -> Any:
    """Whoever joins from here on sees nothing older."""
    return _change(call, query.channel, hidden_history=int(query.enabled))


@handles(raw.functions.channels.ToggleForum)
async def toggle_forum(call: Call, query: Any) -> Any:
    place = administered(call, query.channel)
    topics = call.ledger.channels.topics(place.box)
    if query.enabled and not any(row["topic_id"] == GENERAL_TOPIC for row in topics):
        call.ledger.channels.add_topic(place.box, GENERAL_TOPIC, "General", ICON_COLOR, call.me.user_id)
    return _change(call, query.channel, forum=int(query.enabled))


@handles(raw.functions.channels.UpdateUsername)
async def update_username(call: Call, query: Any) -> Any:
    place = administered(call, query.channel)
    other = call.ledger.channels.by_username(query.username) if query.username else None
    if other is not None and other.channel_id != place.box:
        raise RpcFault(400, "USERNAME_OCCUPIED")
    call.ledger.channels.change(place.box, username=query.username or None)
    return boolean(True)


@handles(raw.functions.channels.ExportMessageLink)
async def export_message_link(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    assert place.channel is not None
    if call.ledger.messages.get(place.box, query.id) is None:
        raise RpcFault(400, "MESSAGE_ID_INVALID")
    link = f"https://t.me/{place.channel.username or f'c/{place.box}'}/{query.id}"
    return raw.types.ExportedMessageLink(link=link, html="")
