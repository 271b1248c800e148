"""Folders: the archive, which the list of chats is cut by, and chat folders, which clients cut it by."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import TLObject

from worker.sandbox import news
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.dialogs import ARCHIVE, MAIN
from worker.sandbox.handlers.registry import handles
from worker.sandbox.peers import readable
from worker.sandbox.tl import boolean

if TYPE_CHECKING:
    from worker.sandbox.call import Call

# Numbers 0 and 1 mean the whole list and the archive.
CHAT_FOLDERS = range(2, 256)
CHATS, CHATS_PREMIUM = 100, 200
WHOLE_KINDS = ("contacts", "non_contacts", "groups", "broadcasts", "bots")


@handles(raw.functions.folders.EditPeerFolders)
async def edit_peer_folders(call: Call, query: Any) -> Any:
    """Archive chats, or bring them back."""
    moved = []
    for item in query.folder_peers:
        if item.folder_id not in (MAIN, ARCHIVE):
            raise RpcFault(400, "FOLDER_ID_INVALID")
        place = readable(call, item.peer)
        if place.channel is None:
            raise RpcFault(400, "PEER_ID_INVALID")
        moved.append((place.box, item.folder_id))
    for channel_id, folder in moved:
        call.ledger.channels.set_folder(channel_id, call.me.user_id, folder)
    peers = [
        raw.types.FolderPeer(peer=raw.types.PeerChannel(channel_id=channel_id), folder_id=folder)
        for channel_id, folder in moved
    ]
    pts = call.ledger.messages.pts(-call.me.user_id)
    return _tell(call, raw.types.UpdateFolderPeers(folder_peers=peers, pts=pts, pts_count=0))


@handles(raw.functions.messages.GetDialogFilters)
async def get_dialog_filters(call: Call, _query: Any) -> Any:
    kept = call.ledger.folders.of(call.me.user_id)
    return raw.types.messages.DialogFilters(filters=[TLObject.read(BytesIO(each)) for each in kept])


@handles(raw.functions.messages.UpdateDialogFilter)
async def update_dialog_filter(call: Call, query: Any) -> Any:
    """Make or change a chat folder; without one, remove it."""
    if query.id not in CHAT_FOLDERS:
        raise RpcFault(400, "FILTER_ID_INVALID")
    if query.filter is None:
        call.ledger.folders.drop(call.me.user_id, query.id)
    else:
        _check(call, query.filter)
        call.ledger.folders.keep(call.me.user_id, query.id, query.filter.write())
    _tell(call, raw.types.UpdateDialogFilters())
    return boolean(True)


def _check(call: Call, folder: Any) -> None:
    if not isinstance(folder, raw.types.DialogFilter):
        raise RpcFault(400, "FILTER_NOT_SUPPORTED")
    if not folder.title.text.strip():
        raise RpcFault(400, "FILTER_TITLE_EMPTY")
    included = [*folder.pinned_peers, *folder.include_peers]
    if not included and not any(getattr(folder, kind) for kind in WHOLE_KINDS):
        raise RpcFault(400, "FILTER_INCLUDE_EMPTY")
    if len(included) > (CHATS_PREMIUM if call.me.premium else CHATS):
        raise RpcFault(400, "FILTER_INCLUDE_TOO_MUCH")
    for peer in (*included, *folder.exclude_peers):
        readable(call, peer)


@handles(raw.functions.messages.UpdateDialogFiltersOrder)
async def update_dialog_filters_order(call: Call, query: Any) -> Any:
    call.ledger.folders.reorder(call.me.user_id, list(query.order))
    _tell(call, raw.types.UpdateDialogFilters())
    return boolean(True)


def _tell(call: Call, item: Any) -> Any:
    """Tell the account's other sessions, and return what they are told."""
    told = news.updates([item], [], [])
    news.announce(call.sandbox, -call.me.user_id, lambda _: told, besides=call.session)
    return told
