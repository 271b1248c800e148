"""Changing and deleting messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import media, news
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.handlers.sending import check_caption, check_text
from worker.sandbox.peers import readable, writable
from worker.sandbox.render import View
from worker.sandbox.tl import write_vector

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.peers import Place


@handles(raw.functions.messages.EditMessage)
async def edit_message(call: Call, query: Any) -> Any:
    place = writable(call, query.peer)
    message = call.ledger.messages.get(place.box, query.id)
    if message is None or message.action is not None:
        raise RpcFault(400, "MESSAGE_ID_INVALID")
    administers = place.member is not None and place.member.may_administer
    if message.from_id != call.me.user_id and not administers:
        raise RpcFault(403, "MESSAGE_AUTHOR_REQUIRED")
    columns: dict[str, Any] = {}
    if query.message is not None:
        if message.document_id is None and query.media is None:
            check_text(query.message)
        else:
            check_caption(call, query.message)
        columns |= {"text": query.message, "entities": write_vector(query.entities)}
    if query.media is not None:
        document = await media.resolve(call, query.media)
        columns |= {"document_id": document.document_id, "kind": document.kind}
    if all(getattr(message, name) == value for name, value in columns.items()):
        raise RpcFault(400, "MESSAGE_NOT_MODIFIED")
    edited, pts = call.ledger.messages.edit(message, **columns)

    def make(view: View) -> Any:
        return news.bundle(view, [news.edited_message(view, edited, pts)], [edited])

    news.announce(call.sandbox, place.box, make, besides=call.session)
    return make(View(call.sandbox, call.me))


@handles(raw.functions.channels.DeleteMessages)
async def delete_channel_messages(call: Call, query: Any) -> Any:
    place = readable(call, query.channel)
    administers = place.member is not None and place.member.may_administer
    for message_id in query.id:
        message = call.ledger.messages.get(place.box, message_id)
        if message is not None and message.from_id != call.me.user_id and not administers:
            raise RpcFault(403, "MESSAGE_DELETE_FORBIDDEN")
    return _delete(call, place, query.id)


@handles(raw.functions.messages.DeleteMessages)
async def delete_private_messages(call: Call, query: Any) -> Any:
    return _delete(call, readable(call, raw.types.InputPeerSelf()), query.id)


def _delete(call: Call, place: Place, ids: list[int]) -> Any:
    gone, pts = call.ledger.messages.delete(place.box, list(ids))
    if gone:
        news.announce(
            call.sandbox,
            place.box,
            lambda _: news.updates([news.deleted_messages(place.box, gone, pts)], [], []),
            besides=call.session,
        )
    return raw.types.messages.AffectedMessages(pts=pts, pts_count=len(gone))
