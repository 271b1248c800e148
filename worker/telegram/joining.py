"""Becoming a member of a channel, by its name or by an invitation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.errors import FleetError, RefusedError, UserError
from worker.telegram.convert import to_channel

if TYPE_CHECKING:
    from worker.domain.telegram import ChannelInfo
    from worker.telegram.gateway import Gateway

_REASONS = {
    "USERNAME_NOT_OCCUPIED": ("nobody has that name", "check how it is written"),
    "USERNAME_INVALID": ("that is no name of a channel", "check how it is written"),
    "INVITE_HASH_EXPIRED": ("the invitation is no longer valid", "ask for another one"),
    "INVITE_HASH_INVALID": ("that is no invitation", "check how the link is written"),
    "INVITE_REQUEST_SENT": ("the channel's owner has to let the account in", "add it again after that"),
    "CHANNELS_TOO_MUCH": (
        "the account is in as many channels as Telegram allows",
        "leave one, or use another",
    ),
    "CHANNEL_PRIVATE": ("the account may not enter", "use an invitation, or another account"),
    "USER_CHANNELS_TOO_MUCH": ("the account is in as many channels as Telegram allows", "leave one first"),
}


async def join_public(gateway: Gateway, username: str) -> ChannelInfo:
    """Enter the channel of this name."""
    try:
        found = await gateway.read(raw.functions.contacts.ResolveUsername(username=username))
        chat = next((chat for chat in found.chats if isinstance(chat, raw.types.Channel)), None)
        if chat is None or not isinstance(found.peer, raw.types.PeerChannel):
            raise UserError(f"@{username} is neither a channel nor a supergroup", remedy="name another one")
        address = raw.types.InputChannel(channel_id=chat.id, access_hash=chat.access_hash)
        if chat.left:
            await _enter(gateway, raw.functions.channels.JoinChannel(channel=address))
            answer = await gateway.read(raw.functions.channels.GetChannels(id=[address]))
            chat = answer.chats[0]
    except FleetError as error:
        raise explained(error) from error
    return _member_of(chat)


async def join_invited(gateway: Gateway, invite: str) -> ChannelInfo:
    """Enter the channel that this invitation is for."""
    try:
        known = await gateway.read(raw.functions.messages.CheckChatInvite(hash=invite))
        if not isinstance(known, raw.types.ChatInviteAlready):
            await _enter(gateway, raw.functions.messages.ImportChatInvite(hash=invite))
            known = await gateway.read(raw.functions.messages.CheckChatInvite(hash=invite))
        if not isinstance(known, raw.types.ChatInviteAlready):
            raise UserError("the account was not let in yet", remedy="add the channel again later")
    except FleetError as error:
        raise explained(error) from error
    return _member_of(known.chat)


async def _enter(gateway: Gateway, query: Any) -> None:
    try:
        await gateway.read(query)
    except RefusedError as error:
        # An earlier try has arrived, and its answer was lost.
        if "USER_ALREADY_PARTICIPANT" not in error.what:
            raise


def _member_of(chat: Any) -> ChannelInfo:
    info = to_channel(chat)
    if info is None:
        raise UserError(
            "that is neither a channel nor a supergroup",
            remedy="a basic group has to be made a supergroup first",
        )
    return info


def explained(error: FleetError) -> FleetError:
    """The error in words that a person can act on."""
    for text, (what, remedy) in _REASONS.items():
        if text in error.what:
            return UserError(what, remedy=remedy)
    if isinstance(error, RefusedError):
        return UserError(error.what, remedy="see Telegram's documentation of this error")
    return error
