"""auth.*: logging in by code and password, logging out, and carrying an authorisation to another key."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.ledger.accounts import plain
from worker.sandbox.render import View
from worker.sandbox.tl import boolean

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Account


API_HASH = re.compile("[0-9a-f]{32}")


def _check_number(call: Call, phone: str) -> None:
    if not 5 <= len(plain(phone)) <= 15:
        raise RpcFault(400, "PHONE_NUMBER_INVALID")
    account = call.ledger.accounts.by_phone(phone)
    if account is not None and account.banned:
        raise RpcFault(400, "PHONE_NUMBER_BANNED")


def _logged_in(call: Call, account: Account) -> Any:
    call.ledger.keys.authorise(call.key.key_id, account.user_id)
    call.sandbox.presence.authorised(call.key.key_id, account.user_id)
    return raw.types.auth.Authorization(user=View(call.sandbox, account).user(account))


@handles(raw.functions.auth.SendCode, needs_account=False)
async def send_code(call: Call, query: Any) -> Any:
    if query.api_id <= 0 or not API_HASH.fullmatch(query.api_hash):
        raise RpcFault(400, "API_ID_INVALID")
    _check_number(call, query.phone_number)
    return _sent(call, query.phone_number)


@handles(raw.functions.auth.ResendCode, needs_account=False)
async def resend_code(call: Call, query: Any) -> Any:
    wrong = call.ledger.accounts.check_code(query.phone_number, query.phone_code_hash, None)
    if wrong:
        raise RpcFault(400, wrong)
    return _sent(call, query.phone_number)


@handles(raw.functions.auth.CancelCode, needs_account=False)
async def cancel_code(call: Call, query: Any) -> Any:
    call.ledger.accounts.spend_code(query.phone_number)
    return boolean(True)


def _sent(call: Call, phone: str) -> Any:
    code = call.sandbox.options.code
    code_hash = call.ledger.accounts.send_code(phone, code)
    return raw.types.auth.SentCode(
        type=raw.types.auth.SentCodeTypeApp(length=len(code)), phone_code_hash=code_hash
    )


@handles(raw.functions.auth.SignIn, needs_account=False)
async def sign_in(call: Call, query: Any) -> Any:
    _check_number(call, query.phone_number)
    if not query.phone_code:
        raise RpcFault(400, "PHONE_CODE_EMPTY")
    wrong = call.ledger.accounts.check_code(query.phone_number, query.phone_code_hash, query.phone_code)
    if wrong:
        raise RpcFault(400, wrong)
    account = call.ledger.accounts.by_phone(query.phone_number)
    if account is None:
        call.ledger.accounts.prove_code(query.phone_number)
        return raw.types.auth.AuthorizationSignUpRequired()
    if account.verifier is not None:
        call.ledger.keys.await_password(call.key.key_id, account.user_id)
        raise RpcFault(401, "SESSION_PASSWORD_NEEDED")
    call.ledger.accounts.spend_code(query.phone_number)
    return _logged_in(call, account)


@handles(raw.functions.auth.SignUp, needs_account=False)
async def sign_up(call: Call, query: Any) -> Any:
    _check_number(call, query.phone_number)
    wrong = call.ledger.accounts.check_code(query.phone_number, query.phone_code_hash, None)
    if wrong:
        raise RpcFault(400, wrong)
    if not call.ledger.accounts.is_proven(query.phone_number):
        raise RpcFault(400, "PHONE_CODE_EMPTY")
    if not query.first_name.strip():
        raise RpcFault(400, "FIRSTNAME_INVALID")
    if call.ledger.accounts.by_phone(query.phone_number) is not None:
        raise RpcFault(400, "PHONE_NUMBER_OCCUPIED")
    call.ledger.accounts.spend_code(query.phone_number)
    return _logged_in(
        call, call.ledger.accounts.create(query.phone_number, query.first_name, query.last_name)
    )


@handles(raw.functions.auth.CheckPassword, needs_account=False)
async def check_password(call: Call, query: Any) -> Any:
    user_id = call.key.pending_user_id or call.key.user_id
    account = None if user_id is None else call.ledger.accounts.get(user_id)
    if account is None:
        raise RpcFault(401, "AUTH_KEY_UNREGISTERED")
    call.sandbox.challenges.check(account, query.password)
    call.ledger.accounts.spend_code(account.phone)
    return _logged_in(call, account)


@handles(raw.functions.auth.LogOut)
async def log_out(call: Call, _query: Any) -> Any:
    call.ledger.keys.log_out(call.key.key_id)
    return raw.types.auth.LoggedOut()


@handles(raw.functions.auth.ExportAuthorization)
async def export_authorization(call: Call, query: Any) -> Any:
    if query.dc_id not in range(1, 6) or query.dc_id == call.key.dc_id:
        raise RpcFault(400, "DC_ID_INVALID")
    token = os.urandom(64)
    call.ledger.keys.export(call.me.user_id, query.dc_id, token)
    return raw.types.auth.ExportedAuthorization(id=call.me.user_id, bytes=token)


@handles(raw.functions.auth.ImportAuthorization, needs_account=False)
async def import_authorization(call: Call, query: Any) -> Any:
    dc_id = call.ledger.keys.redeem(query.id, query.bytes)
    account = call.ledger.accounts.get(query.id)
    if dc_id is None or account is None:
        raise RpcFault(400, "AUTH_BYTES_INVALID")
    call.ledger.keys.authorise(call.key.key_id, account.user_id, dc_id)
    call.sandbox.presence.authorised(call.key.key_id, account.user_id)
    return raw.types.auth.Authorization(user=View(call.sandbox, account).user(account))
