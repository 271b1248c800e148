"""The calls that log an account in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrogram import raw
from pyrogram.utils import compute_password_check

from worker.errors import (
    AccountUnusableError,
    OutcomeUnknownError,
    PasswordNeededError,
    RefusedError,
    RetryableError,
)
from worker.telegram.failures import ElsewhereError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.telegram.client import Server
    from worker.telegram.gateway import Gateway

_MOVES = 3
_TRIES = 3
_NOBODY = "AUTH_KEY_UNREGISTERED"
_GONE = (_NOBODY, "does not know this session")


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
    """Log in with the code; ``PasswordNeededError`` if the account has a password too."""
    query = raw.functions.auth.SignIn(phone_number=phone, phone_code_hash=code_hash, phone_code=code)

    async def give_the_code() -> None:
        answer = await gateway.ask(query)
        if isinstance(answer, raw.types.auth.AuthorizationSignUpRequired):
            raise RefusedError("auth.signIn: PHONE_NUMBER_UNOCCUPIED")

    await _bring_about(give_the_code, lambda: is_logged_in(gateway))


async def check_password(gateway: Gateway, password: str) -> None:
    """Finish a login that asks for the account's password; the password itself is never sent."""

    async def give_the_password() -> None:
        # Each question is answered once.
        asked = await gateway.read(raw.functions.account.GetPassword())
        proof = compute_password_check(asked, password)
        await gateway.ask(raw.functions.auth.CheckPassword(password=proof))

    async def is_accepted() -> bool:
        try:
            return await is_logged_in(gateway)
        except PasswordNeededError:
            return False

    await _bring_about(give_the_password, is_accepted)


async def log_out(gateway: Gateway) -> None:
    """End the session at Telegram: its key is worth nothing from here on."""

    async def end_it() -> None:
        await gateway.ask(raw.functions.auth.LogOut())

    async def is_over() -> bool:
        return not await is_logged_in(gateway)

    try:
        await _bring_about(end_it, is_over)
    except AccountUnusableError as error:
        # Ended before, perhaps by a try whose answer was lost.
        if not any(text in error.what for text in _GONE):
            raise


async def is_logged_in(gateway: Gateway) -> bool:
    """Whether the session speaks for its account; ``PasswordNeededError`` if all but the password is done."""
    try:
        await gateway.read(raw.functions.users.GetUsers(id=[raw.types.InputUserSelf()]))
    except AccountUnusableError as error:
        if _NOBODY not in error.what:
            raise
        return False
    return True


async def _bring_about(step: Callable[[], Awaitable[None]], is_done: Callable[[], Awaitable[bool]]) -> None:
    """Take a step that Telegram takes once, though the answer to it may be lost.

    A code, and an answer to the question for the password, serve once: given again they are refused as wrong,
    or as too old, although the session is logged in. So the session is asked who it is before anything is
    repeated, and before a refusal is believed, since an earlier copy of the call may have arrived.
    """
    for left in reversed(range(_TRIES)):
        try:
            return await step()
        except OutcomeUnknownError as lost:
            if await is_done():
                return None
            if not left:
                raise RetryableError(lost.what) from lost
        except RefusedError:
            if await is_done():
                return None
            raise
    return None
