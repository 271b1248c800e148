"""Logging accounts in: what has to happen before the fleet can work with them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import FleetError, NotBeforeError, PasswordNeededError, RefusedError, UserError
from worker.store import accounts, channels
from worker.store.accounts import StoredSession
from worker.telegram.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from worker.fleet.governance import Governance
    from worker.store.accounts import Account
    from worker.store.database import Database
    from worker.store.sealing import Sealer
    from worker.telegram.client import Server

    Ask = Callable[[], Awaitable[str]]

_NEXT_STEPS = {
    "PHONE_CODE_INVALID": ("the code is wrong", "run the command again for a new one"),
    "PHONE_CODE_EXPIRED": ("the code is too old", "run the command again for a new one"),
    "PASSWORD_HASH_INVALID": ("the password is wrong", "run the command again"),
    "PHONE_NUMBER_INVALID": ("that is no phone number", "write it with its country code, like +49…"),
    "PHONE_NUMBER_BANNED": ("Telegram has banned this number", "use another account"),
    "API_ID_INVALID": ("telegram.api_id and telegram.api_hash do not fit", "check both at my.telegram.org"),
}


@dataclass(frozen=True, slots=True)
class Login:
    """What every login needs."""

    database: Database
    sealer: Sealer
    server: Server
    governance: Governance
    deadline: float


async def log_in(login: Login, phone: str, *, ask_code: Ask, ask_password: Ask) -> Account:
    """Log an account in with what it is asked for, keep its session, and note the channels it sees."""
    account = await accounts.add_account(login.database, phone)
    permission = login.governance.permission(account.id, urgent=True)
    try:
        async with _connected(
            Gateway(login.server, permission=permission, deadline=login.deadline)
        ) as gateway:
            code_hash = await gateway.request_code(phone)
            try:
                await gateway.sign_in(phone, code_hash, (await ask_code()).strip())
            except PasswordNeededError:
                await gateway.check_password(await ask_password())
            me = await gateway.me()
            session = StoredSession(*gateway.session)
            await accounts.save_login(login.database, login.sealer, account.id, session, me)
            await channels.record_seen(login.database, account.id, await gateway.channels())
    except (RefusedError, NotBeforeError) as error:
        raise _explain(error) from error
    return await accounts.add_account(login.database, phone)


def _explain(error: FleetError) -> UserError:
    if isinstance(error, NotBeforeError):
        return UserError(
            "Telegram wants this number to wait", remedy=f"try again in {error.seconds / 60:.0f} minutes"
        )
    for text, (what, remedy) in _NEXT_STEPS.items():
        if text in error.what:
            return UserError(what, remedy=remedy)
    return UserError(error.what, remedy="see Telegram's documentation of this error")


@contextlib.asynccontextmanager
async def _connected(gateway: Gateway) -> AsyncIterator[Gateway]:
    try:
        await gateway.connect()
        yield gateway
    finally:
        await gateway.close()
