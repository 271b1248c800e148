"""Sending: messages, media, albums, forwards. A ``random_id`` makes each of them at most once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import media, news
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.channels import GENERAL_TOPIC
from worker.sandbox.ledger.database import new_id
from worker.sandbox.peers import readable, writable
from worker.sandbox.render import View
from worker.sandbox.tl import write_vector

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Message
    from worker.sandbox.peers import Place

TEXT_LIMIT, CAPTION_LIMIT, CAPTION_LIMIT_PREMIUM = 4096, 1024, 4096
ALBUM_LIMIT, FORWARD_LIMIT = 10, 100


@handles(raw.functions.messages.SendMessage)
async def send_message(call: Call, query: Any) -> Any:
    place = writable(call, query.peer)
    check_text(query.message)
    repeated = _repeated(call, place, [query.random_id])
    if repeated is not None:
        return repeated
    columns = {
        "text": query.message,
        "entities": write_vector(query.entities),
        "noforwards": int(bool(query.noforwards)),
        **_threading(call, place, query.reply_to),
    }
    return _deliver(call, place, [(query.random_id, columns)])


@handles(raw.functions.messages.SendMedia)
async def send_media(call: Call, query: Any) -> Any:
    place = writable(call, query.peer)
    check_caption(call, query.message)
    repeated = _repeated(call, place, [query.random_id])
    if repeated is not None:
        return repeated
    threading = _threading(call, place, query.reply_to)
    document = await media.resolve(call, query.media)
    columns = {
        "text": query.message,
        "entities": write_vector(query.entities),
        "document_id": document.document_id,
        "kind": document.kind,
        "noforwards": int(bool(query.noforwards)),
        **threading,
    }
    return _deliver(call, place, [(query.random_id, columns)])


@handles(raw.functions.messages.SendMultiMedia)
async def send_multi_media(call: Call, query: Any) -> Any:
    place = writable(call, query.peer)
    if not 1 <= len(query.multi_media) <= ALBUM_LIMIT:
        raise RpcFault(400, "MULTI_MEDIA_TOO_LONG")
    repeated = _repeated(call, place, [single.random_id for single in query.multi_media])
    if repeated is not None:
        return repeated
    threading = _threading(call, place, query.reply_to)
    grouped_id = new_id()
    pieces = []
    for single in query.multi_media:
        check_caption(call, single.message)
        if not isinstance(single.media, (raw.types.InputMediaDocument, raw.types.InputMediaPhoto)):
            # An album is put together of what messages.uploadMedia has made before.
            raise RpcFault(400, "MEDIA_INVALID")
        document = await media.resolve(call, single.media)
        columns = {
            "text": single.message,
            "entities": write_vector(single.entities),
            "document_id": document.document_id,
            "kind": document.kind,
            "grouped_id": grouped_id,
            "noforwards": int(bool(query.noforwards)),
            **threading,
        }
        pieces.append((single.random_id, columns))
    return _deliver(call, place, pieces)


@handles(raw.functions.messages.UploadMedia)
async def upload_media(call: Call, query: Any) -> Any:
    readable(call, query.peer)
    document = await media.resolve(call, query.media)
    return View(call.sandbox, call.me).document_media(document, -call.me.user_id, 0)


@handles(raw.functions.messages.ForwardMessages)
async def forward_messages(call: Call, query: Any) -> Any:
    source, place = readable(call, query.from_peer), writable(call, query.to_peer)
    if not 0 < len(query.id) <= FORWARD_LIMIT or len(query.id) != len(query.random_id):
        raise RpcFault(400, "RANDOM_ID_INVALID")
    repeated = _repeated(call, place, query.random_id)
    if repeated is not None:
        return repeated
    threading = _threading(call, place, query.reply_to or _topic(query.top_msg_id))
    pieces = []
    for message_id, random_id in zip(query.id, query.random_id, strict=True):
        message = call.ledger.messages.get(source.box, message_id)
        if message is None or message.id < source.first_id or message.action is not None:
            raise RpcFault(400, "MESSAGE_ID_INVALID")
        media.check_copyable(call, source.box, message.id)
        columns = {
            "text": message.text,
            "entities": message.entities,
            "document_id": message.document_id,
            "kind": message.kind,
            "fwd_from": None if query.drop_author else _origin(source, message).write(),
            "noforwards": int(bool(query.noforwards)),
            **threading,
        }
        pieces.append((random_id, columns))
    return _deliver(call, place, pieces)


def _topic(topic_id: int | None) -> Any:
    """A forward names the topic it goes to by itself."""
    return raw.types.InputReplyToMessage(reply_to_msg_id=topic_id, top_msg_id=topic_id) if topic_id else None


def _origin(source: Place, message: Message) -> Any:
    if source.channel is not None and source.channel.broadcast:
        peer = raw.types.PeerChannel(channel_id=source.box)
        return raw.types.MessageFwdHeader(date=message.date, from_id=peer, channel_post=message.id)
    return raw.types.MessageFwdHeader(date=message.date, from_id=raw.types.PeerUser(user_id=message.from_id))


def check_text(text: str) -> None:
    if not text.strip():
        raise RpcFault(400, "MESSAGE_EMPTY")
    if len(text) > TEXT_LIMIT:
        raise RpcFault(400, "MESSAGE_TOO_LONG")


def check_caption(call: Call, caption: str) -> None:
    if len(caption) > (CAPTION_LIMIT_PREMIUM if call.me.premium else CAPTION_LIMIT):
        raise RpcFault(400, "MEDIA_CAPTION_TOO_LONG")


def _threading(call: Call, place: Place, reply_to: Any) -> dict[str, int | None]:
    """Return what a message replies to and the forum topic it therefore stands in."""
    forum = place.channel is not None and bool(place.channel.forum)
    if not isinstance(reply_to, raw.types.InputReplyToMessage):
        return {"topic_id": GENERAL_TOPIC if forum else None}
    if not forum:
        return {"reply_to": reply_to.reply_to_msg_id}
    topics = {row["topic_id"]: row for row in call.ledger.channels.topics(place.box)}
    answered = call.ledger.messages.get(place.box, reply_to.reply_to_msg_id)
    topic_id = reply_to.top_msg_id or reply_to.reply_to_msg_id
    if topic_id not in topics and answered is not None:
        topic_id = answered.topic_id or GENERAL_TOPIC
    if topic_id not in topics:
        raise RpcFault(400, "TOPIC_DELETED")
    if topics[topic_id]["closed"] and not (place.member and place.member.may_administer):
        raise RpcFault(400, "TOPIC_CLOSED")
    return {"topic_id": topic_id, "reply_to": reply_to.reply_to_msg_id}


def _place_key(call: Call, place: Place, random_id: int) -> tuple[int, int, int, int]:
    return (call.me.user_id, place.box, place.peer_id or 0, random_id)


def _repeated(call: Call, place: Place, random_ids: list[int]) -> Any:
    """Return the answer to a send that was made before, None if none of it was."""
    if len(set(random_ids)) < len(random_ids):
        raise RpcFault(500, "RANDOM_ID_DUPLICATE")
    known = [
        (random_id, message)
        for random_id in random_ids
        if (message := call.ledger.messages.by_random_id(*_place_key(call, place, random_id))) is not None
    ]
    if not known:
        return None
    if call.sandbox.repeats_are_errors:
        raise RpcFault(500, "RANDOM_ID_DUPLICATE")
    view = View(call.sandbox, call.me)
    pts = call.ledger.messages.pts(place.box)
    items: list[Any] = [
        raw.types.UpdateMessageID(id=message.id, random_id=random_id) for random_id, message in known
    ]
    alive = [message for _, message in known if not message.deleted]
    items += [news.new_message(view, message, pts, pts_count=0) for message in alive]
    return news.bundle(view, items, alive)


def _deliver(call: Call, place: Place, pieces: list[tuple[int, dict[str, Any]]]) -> Any:
    """Write the messages down, answer the sender, and tell everybody else."""
    messages = call.ledger.messages
    written: list[tuple[int, Message, int]] = []
    with call.ledger.db.transaction():
        for random_id, columns in pieces:
            added, pts = messages.add(
                place.box, call.me.user_id, peer_id=place.peer_id, random_id=random_id, **columns
            )
            written.append((random_id, added, pts))
    view = View(call.sandbox, call.me)
    items: list[Any] = [
        raw.types.UpdateMessageID(id=m.id, random_id=random_id) for random_id, m, _ in written
    ]
    items += [news.new_message(view, message, pts) for _, message, pts in written]
    _tell(call, place, [(message, pts) for _, message, pts in written])
    return news.bundle(view, items, [message for _, message, _ in written])


def _tell(call: Call, place: Place, written: list[tuple[Message, int]]) -> None:
    def make(view: View) -> Any:
        items = [news.new_message(view, message, pts) for message, pts in written]
        return news.bundle(view, items, [message for message, _ in written])

    news.announce(call.sandbox, place.box, make, besides=call.session)
    if place.user is None or place.user.user_id == call.me.user_id:
        return
    copies = []
    for message, _ in written:
        columns = {
            name: getattr(message, name)
            for name in ("text", "entities", "document_id", "kind", "grouped_id", "fwd_from", "noforwards")
        }
        copies.append(
            call.ledger.messages.add(-place.user.user_id, call.me.user_id, peer_id=call.me.user_id, **columns)
        )
    written = copies
    news.announce(call.sandbox, -place.user.user_id, make)
