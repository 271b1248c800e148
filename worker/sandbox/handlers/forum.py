"""Forum topics: a topic is named by the message that opened it; General is number 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import news
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.messages import Window
from worker.sandbox.peers import administered, readable, writable
from worker.sandbox.render import View

if TYPE_CHECKING:
    import sqlite3

    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Message
    from worker.sandbox.peers import Place

MAX_PAGE = 100
ICON_COLOR = 0x6FB9F0


def _forum(call: Call, named: Any) -> Place:
    place = readable(call, named)
    if place.channel is None or not place.channel.forum:
        raise RpcFault(400, "CHANNEL_FORUM_MISSING")
    return place


def _newest(call: Call, place: Place, topic_id: int) -> Message | None:
    found = call.ledger.messages.page(place.box, Window(limit=1, first_id=place.first_id, topic_id=topic_id))
    return found[0] if found else None


def _topic(call: Call, place: Place, row: sqlite3.Row, top: Message | None) -> Any:
    return raw.types.ForumTopic(
        id=row["topic_id"],
        date=row["date"],
        peer=raw.types.PeerChannel(channel_id=place.box),
        title=row["title"],
        icon_color=row["icon_color"],
        top_message=top.id if top else row["topic_id"],
        read_inbox_max_id=0,
        read_outbox_max_id=0,
        unread_count=0,
        unread_mentions_count=0,
        unread_reactions_count=0,
        unread_poll_votes_count=0,
        from_id=raw.types.PeerUser(user_id=row["creator"]),
        notify_settings=raw.types.PeerNotifySettings(),
        my=row["creator"] == call.me.user_id or None,
        closed=bool(row["closed"]) or None,
    )


def _listing(call: Call, place: Place, rows: list[sqlite3.Row], count: int) -> Any:
    assert place.channel is not None
    view = View(call.sandbox, call.me)
    tops = {row["topic_id"]: _newest(call, place, row["topic_id"]) for row in rows}
    messages = [message for message in tops.values() if message]
    return raw.types.messages.ForumTopics(
        count=count,
        topics=[_topic(call, place, row, tops[row["topic_id"]]) for row in rows],
        messages=[view.message(message) for message in messages],
        chats=[view.channel(place.channel)],
        users=view.users({row["creator"] for row in rows} | {message.from_id for message in messages}),
        pts=place.channel.pts,
    )


@handles(raw.functions.messages.GetForumTopics)
async def get_forum_topics(call: Call, query: Any) -> Any:
    """Topics by their newest message; the offset is the last topic of the page before."""
    place = _forum(call, query.peer)
    wanted = (query.q or "").lower()
    rows = [row for row in call.ledger.channels.topics(place.box) if wanted in row["title"].lower()]

    def activity(row: sqlite3.Row) -> tuple[int, int]:
        top = _newest(call, place, row["topic_id"])
        return (top.id if top else 0, row["topic_id"])

    rows.sort(key=activity, reverse=True)
    following = rows
    if query.offset_topic:
        ids = [row["topic_id"] for row in rows]
        following = rows[ids.index(query.offset_topic) + 1 :] if query.offset_topic in ids else []
    return _listing(call, place, following[: max(1, min(query.limit, MAX_PAGE))], len(rows))


@handles(raw.functions.messages.GetForumTopicsByID)
async def get_forum_topics_by_id(call: Call, query: Any) -> Any:
    place = _forum(call, query.peer)
    rows = {row["topic_id"]: row for row in call.ledger.channels.topics(place.box)}
    found = [rows[topic_id] for topic_id in query.topics if topic_id in rows]
    answer = _listing(call, place, found, len(query.topics))
    gone = [topic_id for topic_id in query.topics if topic_id not in rows]
    answer.topics += [raw.types.ForumTopicDeleted(id=topic_id) for topic_id in gone]
    return answer


@handles(raw.functions.messages.CreateForumTopic)
async def create_forum_topic(call: Call, query: Any) -> Any:
    _forum(call, query.peer)
    place = writable(call, query.peer)
    if not query.title.strip():
        raise RpcFault(400, "TOPIC_TITLE_EMPTY")
    if call.ledger.messages.by_random_id(call.me.user_id, place.box, 0, query.random_id) is not None:
        raise RpcFault(500, "RANDOM_ID_DUPLICATE")
    color = query.icon_color or ICON_COLOR
    action = raw.types.MessageActionTopicCreate(title=query.title, icon_color=color)
    with call.ledger.db.transaction():
        message, pts = call.ledger.messages.add(
            place.box,
            call.me.user_id,
            opens_topic=True,
            action=action.write(),
            kind="service",
            random_id=query.random_id,
        )
        call.ledger.channels.add_topic(place.box, message.id, query.title, color, call.me.user_id)

    def make(view: View) -> Any:
        return news.bundle(view, [news.new_message(view, message, pts)], [message])

    news.announce(call.sandbox, place.box, make, besides=call.session)
    answer = make(View(call.sandbox, call.me))
    answer.updates.insert(0, raw.types.UpdateMessageID(id=message.id, random_id=query.random_id))
    return answer


@handles(raw.functions.messages.EditForumTopic)
async def edit_forum_topic(call: Call, query: Any) -> Any:
    _forum(call, query.peer)
    place = administered(call, query.peer)
    if query.title is not None:
        call.ledger.channels.change_topic(place.box, query.topic_id, title=query.title)
    if query.closed is not None:
        call.ledger.channels.change_topic(place.box, query.topic_id, closed=int(query.closed))
    return news.updates([], [], [])


@handles(raw.functions.messages.DeleteTopicHistory)
async def delete_topic_history(call: Call, query: Any) -> Any:
    _forum(call, query.peer)
    place = administered(call, query.peer)
    window = Window(limit=2**31, topic_id=query.top_msg_id)
    ids = [message.id for message in call.ledger.messages.page(place.box, window)]
    gone, pts = call.ledger.messages.delete(place.box, [query.top_msg_id, *ids])
    call.ledger.channels.change_topic(place.box, query.top_msg_id, deleted=1)
    return raw.types.messages.AffectedHistory(pts=pts, pts_count=len(gone), offset=0)
