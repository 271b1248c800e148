"""updates.*: what a client missed while it was away."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import news
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.messages import Window
from worker.sandbox.peers import readable
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.messages import Event
    from worker.sandbox.ledger.rows import Message
    from worker.sandbox.peers import Place

MAX_STEPS = 100


def _state(pts: int) -> Any:
    return raw.types.updates.State(pts=pts, qts=0, date=int(time.time()), seq=1, unread_count=0)


def _told(
    call: Call, box: int, events: list[Event], first_id: int
) -> tuple[list[Message], list[Any], list[Message]]:
    """Return new messages, other updates, and every message spoken of."""
    view = View(call.sandbox, call.me)
    fresh: list[Message] = []
    others: list[Any] = []
    spoken_of: list[Message] = []
    for event in events:
        if event.kind == "delete":
            others.append(news.deleted_messages(box, list(event.ids), event.pts))
            continue
        for message_id in event.ids:
            message = call.ledger.messages.get(box, message_id)
            if message is None or message.id < first_id:
                continue
            spoken_of.append(message)
            if event.kind == "new":
                fresh.append(message)
            else:
                others.append(news.edited_message(view, message, event.pts))
    return fresh, others, spoken_of


@handles(raw.functions.updates.GetState)
async def get_state(call: Call, _query: Any) -> Any:
    return _state(call.ledger.messages.pts(-call.me.user_id))


@handles(raw.functions.updates.GetDifference)
async def get_difference(call: Call, query: Any) -> Any:
    box = -call.me.user_id
    events = call.ledger.messages.events_after(box, query.pts, MAX_STEPS)
    if not events:
        return raw.types.updates.DifferenceEmpty(date=int(time.time()), seq=1)
    fresh, others, spoken_of = _told(call, box, events, 0)
    view = View(call.sandbox, call.me)
    parts = {
        "new_messages": [view.message(message) for message in fresh],
        "new_encrypted_messages": [],
        "other_updates": others,
        "chats": view.chats_of(spoken_of),
        "users": view.authors_of(spoken_of),
    }
    state = _state(events[-1].pts)
    if events[-1].pts < call.ledger.messages.pts(box):
        return raw.types.updates.DifferenceSlice(**parts, intermediate_state=state)
    return raw.types.updates.Difference(**parts, state=state)


@handles(raw.functions.updates.GetChannelDifference)
async def get_channel_difference(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    assert place.channel is not None
    limit = max(1, min(query.limit, MAX_STEPS))
    events = call.ledger.messages.events_after(place.box, query.pts, limit)
    newest = call.ledger.messages.pts(place.box)
    if not events:
        return raw.types.updates.ChannelDifferenceEmpty(pts=newest, final=True, timeout=30)
    view = View(call.sandbox, call.me)
    if newest - query.pts > call.sandbox.options.difference_limit:
        return _too_long(call, place)
    fresh, others, spoken_of = _told(call, place.box, events, place.first_id)
    return raw.types.updates.ChannelDifference(
        pts=events[-1].pts,
        final=events[-1].pts >= newest or None,
        timeout=30,
        new_messages=[view.message(message) for message in fresh],
        other_updates=others,
        chats=[view.channel(place.channel)],
        users=view.authors_of(spoken_of),
    )


def _too_long(call: Call, place: Place) -> Any:
    """Too far behind: the client gets the newest page and starts anew from there."""
    assert place.channel is not None
    view = View(call.sandbox, call.me)
    messages = call.ledger.messages.page(place.box, Window(first_id=place.first_id, limit=20))
    dialog = raw.types.Dialog(
        peer=raw.types.PeerChannel(channel_id=place.box),
        top_message=messages[0].id if messages else 0,
        read_inbox_max_id=0,
        read_outbox_max_id=0,
        unread_count=0,
        unread_mentions_count=0,
        unread_reactions_count=0,
        unread_poll_votes_count=0,
        notify_settings=raw.types.PeerNotifySettings(),
        pts=place.channel.pts,
    )
    return raw.types.updates.ChannelDifferenceTooLong(
        final=True,
        timeout=30,
        dialog=dialog,
        messages=[view.message(message) for message in messages],
        chats=[view.channel(place.channel)],
        users=view.authors_of(messages),
    )
