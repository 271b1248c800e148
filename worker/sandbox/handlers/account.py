"""account.*: the password question, and the few settings that clients touch on their own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox import srp
from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.render import View
from worker.sandbox.tl import boolean

if TYPE_CHECKING:
    from worker.sandbox.call import Call


@handles(raw.functions.account.GetPassword, needs_account=False)
async def get_password(call: Call, _query: Any) -> Any:
    user_id = call.key.user_id or call.key.pending_user_id
    account = None if user_id is None else call.ledger.accounts.get(user_id)
    if account is None:
        raise RpcFault(401, "AUTH_KEY_UNREGISTERED")
    answer = raw.types.account.Password(
        new_algo=srp.algorithm(os.urandom(8), os.urandom(16)),
        new_secure_algo=raw.types.SecurePasswordKdfAlgoPBKDF2HMACSHA512iter100000(salt=os.urandom(8)),
        secure_random=os.urandom(256),
    )
    if account.verifier is None or account.salt1 is None or account.salt2 is None:
        return answer
    challenge = call.sandbox.challenges.pose(account)
    answer.has_password = True
    answer.current_algo = srp.algorithm(account.salt1, account.salt2)
    answer.srp_B = challenge.public
    answer.srp_id = challenge.srp_id
    answer.hint = account.hint or None
    return answer


@handles(raw.functions.account.UpdatePasswordSettings)
async def update_password_settings(call: Call, query: Any) -> Any:
    call.sandbox.challenges.check(call.me, query.password)
    settings = query.new_settings
    if settings.new_algo is not None and settings.new_password_hash:
        call.ledger.accounts.set_password(
            call.me.user_id,
            settings.new_algo.salt1,
            settings.new_algo.salt2,
            settings.new_password_hash,
            settings.hint or "",
        )
    return boolean(True)


@handles(raw.functions.account.UpdateStatus)
async def update_status(_call: Call, _query: Any) -> Any:
    return boolean(True)


@handles(raw.functions.account.UpdateUsername)
async def update_username(call: Call, query: Any) -> Any:
    taken = call.ledger.accounts.by_username(query.username) or call.ledger.channels.by_username(
        query.username
    )
    if query.username and taken:
        raise RpcFault(400, "USERNAME_OCCUPIED")
    call.ledger.accounts.set_username(call.me.user_id, query.username)
    return _myself(call)


@handles(raw.functions.account.UpdateProfile)
async def update_profile(call: Call, query: Any) -> Any:
    call.ledger.accounts.set_names(call.me.user_id, query.first_name, query.last_name)
    return _myself(call)


def _myself(call: Call) -> Any:
    account = call.ledger.accounts.get(call.me.user_id)
    assert account is not None
    return View(call.sandbox, account).user(account)
