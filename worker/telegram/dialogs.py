"""The chats that an account is in, and where each channel among them stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.domain.telegram import ChannelHead
from worker.errors import NoAccessError, RefusedError
from worker.log import get_logger
from worker.telegram.convert import to_channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.telegram import ChannelInfo, ChannelRef
    from worker.telegram.gateway import Gateway

log = get_logger(__name__)
PAGE = 100
# Nobody is in so many chats; a server that has no end is left.
_MOST_PAGES = 1000


async def read_channels(gateway: Gateway) -> list[ChannelInfo]:
    """Every channel and supergroup of the account; without a folder named, archived chats are listed too.

    A chat in which something is posted meanwhile moves to the top, past the pages that are still to come: the
    top is read again until it holds nothing that was not seen.
    """
    found: dict[int, ChannelInfo] = {}
    top: tuple[int, int, Any] = (0, 0, raw.types.InputPeerEmpty())
    offset, is_top = top, True
    seen: set[tuple[str, int]] = set()
    for _ in range(_MOST_PAGES):
        date, message_id, peer = offset
        answer = await gateway.read(
            raw.functions.messages.GetDialogs(
                offset_date=date, offset_id=message_id, offset_peer=peer, limit=PAGE, hash=0
            )
        )
        infos = (to_channel(chat) for chat in answer.chats)
        found.update((info.ref.telegram_id, info) for info in infos if info is not None)
        fresh = {_key(dialog.peer) for dialog in answer.dialogs} - seen
        if isinstance(answer, raw.types.messages.Dialogs) or (is_top and not fresh):
            break
        seen |= fresh
        offset, is_top = (_after(answer) or offset, False) if fresh else (top, True)
    return list(found.values())


def _after(answer: Any) -> tuple[int, int, Any] | None:
    """Where the next page begins: after the last dialog whose newest message and address are known."""
    dates = {(_key(m.peer_id), m.id): m.date for m in answer.messages if getattr(m, "date", None)}
    for dialog in reversed(answer.dialogs):
        date = dates.get((_key(dialog.peer), dialog.top_message))
        peer = _address(dialog.peer, answer)
        if date is not None and peer is not None:
            return date, dialog.top_message, peer
    return None


def _key(peer: Any) -> tuple[str, int]:
    kind = type(peer).__name__
    return kind, next(
        getattr(peer, name) for name in ("channel_id", "user_id", "chat_id") if hasattr(peer, name)
    )


def _address(peer: Any, answer: Any) -> Any:
    if isinstance(peer, raw.types.PeerChat):
        return raw.types.InputPeerChat(chat_id=peer.chat_id)
    if isinstance(peer, raw.types.PeerUser):
        hashes = {user.id: getattr(user, "access_hash", None) for user in answer.users}
        known = hashes.get(peer.user_id)
        return known and raw.types.InputPeerUser(user_id=peer.user_id, access_hash=known)
    hashes = {chat.id: getattr(chat, "access_hash", None) for chat in answer.chats}
    known = hashes.get(peer.channel_id)
    return known and raw.types.InputPeerChannel(channel_id=peer.channel_id, access_hash=known)


async def read_heads(gateway: Gateway, channels: Sequence[ChannelRef]) -> dict[int, ChannelHead | None]:
    """Where these channels stand, by Telegram id; one that the account is no longer in has no entry.

    None stands for one of which Telegram does not say it.
    """
    heads: dict[int, ChannelHead | None] = {}
    for start in range(0, len(channels), PAGE):
        heads |= await _heads(gateway, channels[start : start + PAGE])
    return heads


async def _heads(gateway: Gateway, channels: Sequence[ChannelRef]) -> dict[int, ChannelHead | None]:
    peers = [
        raw.types.InputDialogPeer(
            peer=raw.types.InputPeerChannel(channel_id=ref.telegram_id, access_hash=ref.access_hash)
        )
        for ref in channels
    ]
    try:
        answer = await gateway.read(raw.functions.messages.GetPeerDialogs(peers=peers))
    except (NoAccessError, RefusedError) as error:
        if len(channels) == 1:
            if isinstance(error, NoAccessError):
                return {}
            log.warning("channel.head_not_told", channel=channels[0].telegram_id, reason=error.what)
            return {channels[0].telegram_id: None}
        # One channel that the account was removed from, or that is refused, must not hide the others.
        half = len(channels) // 2
        return {**await _heads(gateway, channels[:half]), **await _heads(gateway, channels[half:])}
    return {
        dialog.peer.channel_id: ChannelHead(dialog.top_message, dialog.pts or 0)
        for dialog in answer.dialogs
        if isinstance(dialog.peer, raw.types.PeerChannel)
    }
