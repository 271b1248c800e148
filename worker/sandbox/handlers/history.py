"""Reading messages: history, single messages, search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.messages import Window
from worker.sandbox.peers import readable, user_of
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Message
    from worker.sandbox.peers import Place

MAX_PAGE, MAX_IDS = 100, 200
KINDS: dict[type[Any], tuple[str, ...]] = {
    raw.types.InputMessagesFilterEmpty: (),
    raw.types.InputMessagesFilterDocument: ("document",),
    raw.types.InputMessagesFilterPhotos: ("photo",),
    raw.types.InputMessagesFilterVideo: ("video",),
    raw.types.InputMessagesFilterPhotoVideo: ("photo", "video"),
    raw.types.InputMessagesFilterMusic: ("audio",),
}


def listing(call: Call, place: Place, messages: list[Message], count: int) -> Any:
    """Messages of one place with everything needed to show them."""
    view = View(call.sandbox, call.me)
    parts = {
        "messages": [view.message(message) for message in messages],
        "topics": [],
        "users": view.authors_of(messages),
    }
    if place.channel is not None:
        return raw.types.messages.ChannelMessages(
            pts=call.ledger.messages.pts(place.box), count=count, chats=[view.channel(place.channel)], **parts
        )
    if count > len(messages):
        return raw.types.messages.MessagesSlice(count=count, chats=[], **parts)
    return raw.types.messages.Messages(chats=[], **parts)


def _window(query: Any, place: Place, **more: Any) -> Window:
    return Window(
        offset_id=query.offset_id,
        offset_date=getattr(query, "offset_date", 0),
        add_offset=query.add_offset,
        limit=max(0, min(query.limit, MAX_PAGE)),
        max_id=query.max_id,
        min_id=query.min_id,
        first_id=place.first_id,
        peer_id=place.peer_id,
        **more,
    )


def _page(call: Call, place: Place, window: Window) -> Any:
    messages = call.ledger.messages.page(place.box, window)
    return listing(call, place, messages, call.ledger.messages.count(place.box, window))


@handles(raw.functions.messages.GetHistory)
async def get_history(call: Call, query: Any) -> Any:
    place = readable(call, query.peer)
    return _page(call, place, _window(query, place))


@handles(raw.functions.messages.GetReplies)
async def get_replies(call: Call, query: Any) -> Any:
    place = readable(call, query.peer)
    if place.channel is not None and place.channel.forum:
        topics = {row["topic_id"] for row in call.ledger.channels.topics(place.box)}
        if query.msg_id not in topics:
            raise RpcFault(400, "TOPIC_ID_INVALID")
    return _page(call, place, _window(query, place, topic_id=query.msg_id))


@handles(raw.functions.messages.Search)
async def search(call: Call, query: Any) -> Any:
    place = readable(call, query.peer)
    kinds = KINDS.get(type(query.filter))
    if kinds is None:
        return listing(call, place, [], 0)
    author = None if query.from_id is None else user_of(call, query.from_id).user_id
    window = _window(
        query,
        place,
        kinds=kinds,
        text=query.q,
        topic_id=query.top_msg_id or None,
        from_id=author,
        min_date=query.min_date,
        max_date=query.max_date,
        searched=True,
    )
    return _page(call, place, window)


@handles(raw.functions.messages.GetSearchCounters)
async def get_search_counters(call: Call, query: Any) -> Any:
    place = readable(call, query.peer)
    counters = []
    for wanted in query.filters:
        window = Window(
            kinds=KINDS.get(type(wanted), ("none",)),
            first_id=place.first_id,
            peer_id=place.peer_id,
            topic_id=query.top_msg_id or None,
            searched=True,
        )
        counters.append(
            raw.types.messages.SearchCounter(
                filter=wanted, count=call.ledger.messages.count(place.box, window)
            )
        )
    return counters


@handles(raw.functions.channels.GetMessages)
async def get_channel_messages(call: Call, query: Any) -> Any:
    return _by_id(call, readable(call, query.channel), query.id)


@handles(raw.functions.messages.GetMessages)
async def get_messages(call: Call, query: Any) -> Any:
    return _by_id(call, readable(call, raw.types.InputPeerSelf()), query.id)


def _by_id(call: Call, place: Place, named: list[Any]) -> Any:
    """Messages by id; what is gone or hidden comes as an empty message in its place."""
    if len(named) > MAX_IDS:
        raise RpcFault(400, "LIMIT_INVALID")
    view = View(call.sandbox, call.me)
    found, shown = [], []
    peer = raw.types.PeerChannel(channel_id=place.box) if place.channel else None
    for item in named:
        message = call.ledger.messages.get(place.box, item.id)
        if isinstance(item, raw.types.InputMessageReplyTo) and message is not None:
            message = call.ledger.messages.get(place.box, message.reply_to or 0)
        if message is None or message.id < place.first_id:
            shown.append(raw.types.MessageEmpty(id=item.id, peer_id=peer))
        else:
            found.append(message)
            shown.append(view.message(message))
    answer = listing(call, place, found, len(named))
    answer.messages = shown
    return answer
