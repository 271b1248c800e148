"""users.*: who somebody is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.peers import user_of
from worker.sandbox.render import View

if TYPE_CHECKING:
    from worker.sandbox.call import Call


@handles(raw.functions.users.GetUsers)
async def get_users(call: Call, query: Any) -> Any:
    view = View(call.sandbox, call.me)
    found = []
    for named in query.id:
        try:
            found.append(view.user(user_of(call, named)))
        except RpcFault:
            # The real server leaves out whom it does not know instead of refusing the whole list.
            continue
    return found


@handles(raw.functions.users.GetFullUser)
async def get_full_user(call: Call, query: Any) -> Any:
    account = user_of(call, query.id)
    full = raw.types.UserFull(
        id=account.user_id,
        settings=raw.types.PeerSettings(),
        notify_settings=raw.types.PeerNotifySettings(),
        common_chats_count=0,
    )
    return raw.types.users.UserFull(
        full_user=full, chats=[], users=[View(call.sandbox, call.me).user(account)]
    )
