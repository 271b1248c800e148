"""Invitation links."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.channels import enter
from worker.sandbox.handlers.registry import handles
from worker.sandbox.peers import administered
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Channel

PREFIX = "https://t.me/+"


@handles(raw.functions.messages.ExportChatInvite)
async def export_chat_invite(call: Call, query: Any) -> Any:
    place = administered(call, query.peer)
    invite = call.ledger.channels.invite(place.box, renew=bool(query.legacy_revoke_permanent))
    return raw.types.ChatInviteExported(
        link=PREFIX + invite, admin_id=call.me.user_id, date=int(time.time()), permanent=True
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
        participants_count=call.ledger.channels.member_count(channel.channel_id),
        color=0,
        channel=True,
        broadcast=bool(channel.broadcast) or None,
        megagroup=not channel.broadcast or None,
        about=channel.about or None,
    )


@handles(raw.functions.messages.ImportChatInvite)
async def import_chat_invite(call: Call, query: Any) -> Any:
    return enter(call, _invited(call, query.hash), by_invite=True)
