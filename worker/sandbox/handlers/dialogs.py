"""Lists of chats, and invitations into them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import news
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.channels import enter
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.messages import Window
from worker.sandbox.peers import administered, channel_of
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Channel, Member, Message

MAX_PAGE = 100
INVITE_PREFIX = "https://t.me/+"


@dataclass(frozen=True, slots=True)
class Entry:
    """One chat of the list, with its newest message."""

    member: Member
    channel: Channel
    top: Message | None

    @property
    def order(self) -> tuple[int, int]:
        return (self.top.date if self.top else self.channel.date, self.channel.channel_id)


def _entries(call: Call, folder: int | None) -> list[Entry]:
    entries = [
        Entry(
            member,
            call.ledger.channels.need(member.channel_id),
            call.ledger.messages.newest(member.channel_id, member.first_id),
        )
        for member in call.ledger.channels.of(call.me.user_id)
        if folder is None or member.folder == folder
    ]
    return sorted(entries, key=lambda entry: entry.order, reverse=True)


def _dialog(call: Call, entry: Entry) -> Any:
    member = entry.member
    unread = Window(first_id=max(member.first_id, member.read_max + 1))
    return raw.types.Dialog(
        peer=raw.types.PeerChannel(channel_id=entry.channel.channel_id),
        top_message=entry.top.id if entry.top else 0,
        read_inbox_max_id=member.read_max,
        read_outbox_max_id=entry.channel.last_id,
        unread_count=call.ledger.messages.count(entry.channel.channel_id, unread),
        unread_mentions_count=0,
        unread_reactions_count=0,
        unread_poll_votes_count=0,
        notify_settings=raw.types.PeerNotifySettings(),
        pts=entry.channel.pts,
        folder_id=member.folder or None,
    )


def _parts(call: Call, entries: list[Entry]) -> dict[str, Any]:
    view = View(call.sandbox, call.me)
    tops = [entry.top for entry in entries if entry.top]
    return {
        "dialogs": [_dialog(call, entry) for entry in entries],
        "messages": [view.message(message) for message in tops],
        "chats": [view.channel(entry.channel) for entry in entries],
        "users": view.authors_of(tops),
    }


@handles(raw.functions.messages.GetDialogs)
async def get_dialogs(call: Call, query: Any) -> Any:
    entries = _entries(call, query.folder_id)
    following = entries
    if isinstance(query.offset_peer, raw.types.InputPeerChannel):
        ids = [entry.channel.channel_id for entry in entries]
        if query.offset_peer.channel_id in ids:
            following = entries[ids.index(query.offset_peer.channel_id) + 1 :]
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
    wanted = {channel_of(call, item.peer).channel_id for item in query.peers}
    return _peer_dialogs(call, [e for e in _entries(call, None) if e.channel.channel_id in wanted])


def _peer_dialogs(call: Call, entries: list[Entry]) -> Any:
    pts = call.ledger.messages.pts(-call.me.user_id)
    state = raw.types.updates.State(pts=pts, qts=0, date=int(time.time()), seq=1, unread_count=0)
    return raw.types.messages.PeerDialogs(**_parts(call, entries), state=state)


@handles(raw.functions.folders.EditPeerFolders)
async def edit_peer_folders(call: Call, query: Any) -> Any:
    for item in query.folder_peers:
        channel = channel_of(call, item.peer)
        call.ledger.channels.set_folder(channel.channel_id, call.me.user_id, item.folder_id)
    return news.updates([], [], [])


@handles(raw.functions.messages.ExportChatInvite)
async def export_chat_invite(call: Call, query: Any) -> Any:
    place = administered(call, query.peer)
    invite = call.ledger.channels.invite(place.box, renew=bool(query.legacy_revoke_permanent))
    return raw.types.ChatInviteExported(
        link=INVITE_PREFIX + invite, admin_id=call.me.user_id, date=int(time.time()), permanent=True
    )


def _invited(call: Call, invite: str) -> Channel:
    channel = call.ledger.channels.by_invite(invite)
    if channel is None:
        raise RpcFault(400, "INVITE_HASH_EXPIRED")
    return channel


@handles(raw.functions.messages.CheckChatInvite)
async def check_chat_invite(call: Call, query: Any) -> Any:
    channel = _invited(call, query.hash)
    member = call.ledger.channels.member(channel.channel_id, call.me.user_id)
    if member is not None and member.inside:
        return raw.types.ChatInviteAlready(chat=View(call.sandbox, call.me).channel(channel))
    return raw.types.ChatInvite(
        title=channel.title,
        photo=raw.types.PhotoEmpty(id=0),
        participants_count=len(call.ledger.channels.members(channel.channel_id)),
        color=0,
        channel=True,
        broadcast=bool(channel.broadcast) or None,
        megagroup=not channel.broadcast or None,
        about=channel.about or None,
    )


@handles(raw.functions.messages.ImportChatInvite)
async def import_chat_invite(call: Call, query: Any) -> Any:
    return enter(call, _invited(call, query.hash), by_invite=True)
