"""Who and what a call names, and whether the caller may read or write there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.ledger.rows import Role
from worker.sandbox.references import own_hash

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Account, Channel, Member


@dataclass(frozen=True, slots=True)
class Place:
    """Where messages are read or written: a channel, or a private chat in the caller's own box."""

    box: int
    channel: Channel | None = None
    member: Member | None = None
    user: Account | None = None

    @property
    def first_id(self) -> int:
        """The oldest message the caller may see."""
        return self.member.first_id if self.member else 0

    @property
    def peer_id(self) -> int | None:
        return self.user.user_id if self.user else None


def channel_of(call: Call, named: Any) -> Channel:
    """Return the channel an InputChannel or InputPeerChannel names, if the caller knows it rightly."""
    if not isinstance(named, (raw.types.InputChannel, raw.types.InputPeerChannel)):
        raise RpcFault(400, "CHANNEL_INVALID")
    channel = call.ledger.channels.get(named.channel_id)
    if channel is None or named.access_hash != own_hash(channel.access_hash, call.me.user_id):
        raise RpcFault(400, "CHANNEL_INVALID")
    return channel


def user_of(call: Call, named: Any) -> Account:
    """Return the account an InputUser or InputPeerUser names."""
    if isinstance(named, (raw.types.InputUserSelf, raw.types.InputPeerSelf)):
        return call.me
    if not isinstance(named, (raw.types.InputUser, raw.types.InputPeerUser)):
        raise RpcFault(400, "USER_ID_INVALID")
    account = call.ledger.accounts.get(named.user_id)
    if account is None:
        raise RpcFault(400, "USER_ID_INVALID")
    if account.user_id != call.me.user_id and named.access_hash != own_hash(
        account.access_hash, call.me.user_id
    ):
        raise RpcFault(400, "USER_ID_INVALID")
    return account


def readable(call: Call, named: Any) -> Place:
    """Return a place the caller may read; a private channel it is not in answers CHANNEL_PRIVATE."""
    if isinstance(named, (raw.types.InputChannel, raw.types.InputPeerChannel)):
        channel = channel_of(call, named)
        member = call.ledger.channels.member(channel.channel_id, call.me.user_id)
        inside = member is not None and member.inside
        if (member and member.role is Role.KICKED) or not (inside or channel.username):
            raise RpcFault(400, "CHANNEL_PRIVATE")
        return Place(channel.channel_id, channel, member)
    if isinstance(named, (raw.types.InputPeerSelf, raw.types.InputPeerUser)):
        return Place(-call.me.user_id, user=user_of(call, named))
    raise RpcFault(400, "PEER_ID_INVALID")


def writable(call: Call, named: Any) -> Place:
    """Return a place the caller may post to: only administrators post to a broadcast channel."""
    place = readable(call, named)
    if place.channel is None:
        return place
    if place.channel.broadcast and not (place.member and place.member.may_administer):
        raise RpcFault(400, "CHAT_ADMIN_REQUIRED")
    if not (place.member and place.member.inside):
        raise RpcFault(403, "CHAT_WRITE_FORBIDDEN")
    return place


def administered(call: Call, named: Any) -> Place:
    """Return a channel the caller administers."""
    place = readable(call, named)
    if place.channel is None or not (place.member and place.member.may_administer):
        raise RpcFault(400, "CHAT_ADMIN_REQUIRED")
    return place
