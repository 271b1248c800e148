"""Lists of chats: channels and private ones, newest first, in pages and folders."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.messages import Window
from worker.sandbox.peers import readable
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Channel, Member, Message

MAX_PAGE = 100
MAIN, ARCHIVE = 0, 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One chat of the list with its newest message; a private chat has neither channel nor member."""

    peer_id: int
    top: Message | None
    channel: Channel | None = None
    member: Member | None = None

    @property
    def folder(self) -> int:
        return self.member.folder if self.member else MAIN

    @property
    def order(self) -> tuple[int, int]:
        date = self.top.date if self.top else self.channel.date if self.channel else 0
        return (date, self.peer_id)


def _entries(call: Call, folder: int | None) -> list[Entry]:
    channels = [
        Entry(
            member.channel_id,
            call.ledger.messages.newest(member.channel_id, member.first_id),
            call.ledger.channels.need(member.channel_id),
            member,
        )
        for member in call.ledger.channels.of(call.me.user_id)
    ]
    box = -call.me.user_id
    private = [
        Entry(peer_id, call.ledger.messages.newest(box, peer_id=peer_id))
        for peer_id in call.ledger.messages.peers_in(box)
    ]
    entries = [entry for entry in (*channels, *private) if folder is None or entry.folder == folder]
    return sorted(entries, key=lambda entry: entry.order, reverse=True)


def _dialog(call: Call, entry: Entry) -> Any:
    channel, member = entry.channel, entry.member
    unread = 0
    if channel is not None and member is not None:
        window = Window(first_id=max(member.first_id, member.read_max + 1))
        unread = call.ledger.messages.count(channel.channel_id, window)
    peer = (
        raw.types.PeerChannel(channel_id=entry.peer_id)
        if channel is not None
        else raw.types.PeerUser(user_id=entry.peer_id)
    )
    return raw.types.Dialog(
        peer=peer,
        top_message=entry.top.id if entry.top else 0,
        read_inbox_max_id=member.read_max if member else 0,
        read_outbox_max_id=channel.last_id if channel else 0,
        unread_count=unread,
        unread_mentions_count=0,
        unread_reactions_count=0,
        unread_poll_votes_count=0,
        notify_settings=raw.types.PeerNotifySettings(),
        pts=channel.pts if channel else None,
        folder_id=entry.folder or None,
    )


def _parts(call: Call, entries: list[Entry]) -> dict[str, Any]:
    view = View(call.sandbox, call.me)
    tops = [entry.top for entry in entries if entry.top]
    return {
        "dialogs": [_dialog(call, entry) for entry in entries],
        "messages": [view.message(message) for message in tops],
        "chats": [view.channel(entry.channel) for entry in entries if entry.channel],
        "users": view.authors_of(tops),
    }


@handles(raw.functions.messages.GetDialogs)
async def get_dialogs(call: Call, query: Any) -> Any:
    if query.folder_id not in (None, MAIN, ARCHIVE):
        raise RpcFault(400, "FOLDER_ID_INVALID")
    entries = _entries(call, query.folder_id)
    following = entries
    offset = getattr(query.offset_peer, "channel_id", None) or getattr(query.offset_peer, "user_id", None)
    ids = [entry.peer_id for entry in entries]
    if offset in ids:
        following = entries[ids.index(offset) + 1 :]
    elif query.offset_date:
        following = [entry for entry in entries if entry.order[0] < query.offset_date]
    page = following[: max(1, min(query.limit, MAX_PAGE))]
    if len(page) == len(entries):
        return raw.types.messages.Dialogs(**_parts(call, page))
    return raw.types.messages.DialogsSlice(count=len(entries), **_parts(call, page))


@handles(raw.functions.messages.GetPinnedDialogs)
async def get_pinned_dialogs(call: Call, _query: Any) -> Any:
    return _peer_dialogs(call, [])


@handles(raw.functions.messages.GetPeerDialogs)
async def get_peer_dialogs(call: Call, query: Any) -> Any:
    places = [readable(call, item.peer) for item in query.peers]
    wanted = {place.peer_id or place.box for place in places}
    return _peer_dialogs(call, [entry for entry in _entries(call, None) if entry.peer_id in wanted])


def _peer_dialogs(call: Call, entries: list[Entry]) -> Any:
    pts = call.ledger.messages.pts(-call.me.user_id)
    state = raw.types.updates.State(pts=pts, qts=0, date=int(time.time()), seq=1, unread_count=0)
    return raw.types.messages.PeerDialogs(**_parts(call, entries), state=state)
