"""contacts.*: finding a channel or user by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call


@handles(raw.functions.contacts.ResolveUsername)
async def resolve_username(call: Call, query: Any) -> Any:
    view = View(call.sandbox, call.me)
    channel = call.ledger.channels.by_username(query.username)
    if channel is not None:
        return raw.types.contacts.ResolvedPeer(
            peer=raw.types.PeerChannel(channel_id=channel.channel_id), chats=[view.channel(channel)], users=[]
        )
    account = call.ledger.accounts.by_username(query.username)
    if account is None:
        raise RpcFault(400, "USERNAME_NOT_OCCUPIED")
    return raw.types.contacts.ResolvedPeer(
        peer=raw.types.PeerUser(user_id=account.user_id), chats=[], users=[view.user(account)]
    )


@handles(raw.functions.contacts.ResolvePhone)
async def resolve_phone(call: Call, query: Any) -> Any:
    account = call.ledger.accounts.by_phone(query.phone)
    if account is None:
        raise RpcFault(400, "PHONE_NOT_OCCUPIED")
    return raw.types.contacts.ResolvedPeer(
        peer=raw.types.PeerUser(user_id=account.user_id),
        chats=[],
        users=[View(call.sandbox, call.me).user(account)],
    )


@handles(raw.functions.contacts.GetContacts)
async def get_contacts(_call: Call, _query: Any) -> Any:
    return raw.types.contacts.Contacts(contacts=[], saved_count=0, users=[])
