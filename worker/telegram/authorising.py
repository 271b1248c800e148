"""The calls that log an account in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrogram import raw
from pyrogram.utils import compute_password_check

from worker.errors import RefusedError
from worker.telegram.failures import ElsewhereError

if TYPE_CHECKING:
    from worker.telegram.client import Server
    from worker.telegram.gateway import Gateway

_MOVES = 3


async def request_code(gateway: Gateway, server: Server, phone: str) -> str:
    """Have Telegram send a login code; returns what the code has to be presented with.

    The account is asked for at the data centre it belongs to, wherever the first connection went.
    """
    query = raw.functions.auth.SendCode(
        phone_number=phone,
        api_id=server.api_id,
        api_hash=server.api_hash,
        settings=raw.types.CodeSettings(),
    )
    for _ in range(_MOVES):
        try:
            return str((await gateway.read(query)).phone_code_hash)
        except ElsewhereError as elsewhere:
            await gateway.connections.move_home(elsewhere.dc_id)
    raise RefusedError("auth.sendCode: every data centre sends this number to another one")


async def sign_in(gateway: Gateway, phone: str, code_hash: str, code: str) -> None:
    """Log in with the code."""
    query = raw.functions.auth.SignIn(phone_number=phone, phone_code_hash=code_hash, phone_code=code)
    answer = await gateway.read(query)
    if isinstance(answer, raw.types.auth.AuthorizationSignUpRequired):
        raise RefusedError("auth.signIn: PHONE_NUMBER_UNOCCUPIED")


async def check_password(gateway: Gateway, password: str) -> None:
    """Finish a login that asks for the account's password; the password itself is never sent."""
    asked = await gateway.read(raw.functions.account.GetPassword())
    proof = compute_password_check(asked, password)
    await gateway.read(raw.functions.auth.CheckPassword(password=proof))


async def log_out(gateway: Gateway) -> None:
    """End the session at Telegram: its key is worth nothing from here on."""
    await gateway.read(raw.functions.auth.LogOut())
