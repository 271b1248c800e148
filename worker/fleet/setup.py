"""Logging accounts in: what has to happen before the fleet can work with them.

A login is kept, encrypted, from the moment Telegram has sent a code: whoever is interrupted goes on where it
stopped. Neither code nor password is ever written down.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import (
    AccountUnusableError,
    FleetError,
    NotBeforeError,
    PasswordNeededError,
    RefusedError,
    RetryableError,
    UserError,
)
from worker.fleet.login_trouble import explain, is_expired, is_wrong
from worker.store import accounts, channels, pending_logins
from worker.store.accounts import StoredSession
from worker.store.locks import LockSession
from worker.store.pending_logins import PendingLogin
from worker.telegram.authorising import check_password, request_code, sign_in
from worker.telegram.failures import KeyDeniedError
from worker.telegram.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from worker.fleet.governance import Governance
    from worker.store.accounts import Account
    from worker.store.database import Database
    from worker.store.sealing import Sealer
    from worker.telegram.client import Server

    Ask = Callable[[], Awaitable[str]]

_LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Login:
    """What every login needs. ``tries`` is how often a wrong answer is asked for again."""

    database: Database
    sealer: Sealer
    server: Server
    governance: Governance
    deadline: float
    tries: int = 1
    tell: Callable[[str], None] = lambda _: None


async def log_in(
    login: Login, phone: str, *, ask_code: Ask, ask_password: Ask, anew: bool = False
) -> Account:
    """Log an account in with what it is asked for, keep its session, and note the channels it sees.

    ``anew`` leaves a login that was begun before where it stands, and has another code sent.
    """
    account = await accounts.add_account(login.database, phone)
    pending = None if anew else await pending_logins.load(login.database, login.sealer, account.id)
    try:
        async with _alone(login.database, account):
            try:
                await _go_on(login, account, pending, ask_code, ask_password)
            except (AccountUnusableError, KeyDeniedError):
                # No login is lost with a key that nothing has been logged in with.
                if pending is None:
                    raise
                # What was begun has lapsed at Telegram, perhaps with its key.
                login.tell("The login that was begun has lapsed.")
                await _go_on(login, account, None, ask_code, ask_password)
    except (AccountUnusableError, RefusedError, NotBeforeError, RetryableError) as error:
        await _note_end(login, account, error)
        raise explain(account.id, error) from error
    return await accounts.add_account(login.database, phone)


async def _go_on(
    login: Login, account: Account, pending: PendingLogin | None, ask_code: Ask, ask_password: Ask
) -> None:
    """Bring a login to its end, with the key that it was begun with; a fresh one agrees on another."""
    gateway = Gateway(
        login.server,
        permission=login.governance.permission(account.id, urgent=True),
        deadline=login.deadline,
        dc_id=pending.dc_id if pending else None,
        auth_key=pending.auth_key if pending else None,
    )
    async with _connected(gateway):
        await _Steps(login, account, gateway, ask_code, ask_password).run(pending)


async def _note_end(login: Login, account: Account, error: FleetError) -> None:
    """Some refusals end a login for good: there is nothing to go on with."""
    if "PHONE_NUMBER_BANNED" in error.what:
        await accounts.mark(login.database, account.id, "banned", error.what)
    elif "PHONE_NUMBER_UNOCCUPIED" in error.what or "PHONE_NUMBER_INVALID" in error.what:
        await pending_logins.drop(login.database, account.id)
        await accounts.mark(login.database, account.id, "new", None)


class _Steps:
    """One login, from wherever it stands to its end."""

    def __init__(
        self, login: Login, account: Account, gateway: Gateway, ask_code: Ask, ask_password: Ask
    ) -> None:
        self._login = login
        self._account = account
        self._gateway = gateway
        self._ask_code = ask_code
        self._ask_password = ask_password

    async def run(self, pending: PendingLogin | None) -> None:
        if pending is None or not pending.awaits_password:
            await self._give_code(pending)
        else:
            self._login.tell("Telegram has accepted the code; the password is missing.")
            await self._give_password()
        await self._finish()

    async def _give_code(self, pending: PendingLogin | None) -> None:
        if pending is not None:
            self._login.tell("A code was sent before; it is still good if it is recent.")
        for left in reversed(range(self._login.tries)):
            pending = pending or await self._request_code()
            code = (await self._ask_code()).strip()
            try:
                await sign_in(self._gateway, self._account.phone, pending.code_hash, code)
            except PasswordNeededError:
                await self._keep(pending.code_hash, awaits_password=True)
                await self._give_password()
            except RefusedError as error:
                if is_expired(error):
                    await pending_logins.drop(self._login.database, self._account.id)
                    pending = None
                if not left or not (is_wrong(error) or is_expired(error)):
                    raise
                then = "another one is sent." if pending is None else "try again."
                self._login.tell(f"{explain(self._account.id, error).what}; {then}")
                continue
            return

    async def _request_code(self) -> PendingLogin:
        code_hash = await request_code(self._gateway, self._login.server, self._account.phone)
        return await self._keep(code_hash, awaits_password=False)

    async def _keep(self, code_hash: str, *, awaits_password: bool) -> PendingLogin:
        dc_id, auth_key = self._gateway.session
        pending = PendingLogin(dc_id, auth_key, code_hash, awaits_password=awaits_password)
        await pending_logins.save(self._login.database, self._login.sealer, self._account.id, pending)
        state = "awaiting_password" if awaits_password else "awaiting_code"
        await accounts.mark(self._login.database, self._account.id, state, None)
        return pending

    async def _give_password(self) -> None:
        for left in reversed(range(self._login.tries)):
            try:
                await check_password(self._gateway, await self._ask_password())
            except RefusedError as error:
                if not left or not is_wrong(error):
                    raise
                self._login.tell(explain(self._account.id, error).what + "; try again.")
                continue
            return

    async def _finish(self) -> None:
        me = await self._gateway.me()
        session = StoredSession(*self._gateway.session)
        await accounts.save_login(self._login.database, self._login.sealer, self._account.id, session, me)
        await pending_logins.drop(self._login.database, self._account.id)
        seen = await self._gateway.channels()
        await channels.record_seen(self._login.database, self._account.id, seen)


@contextlib.asynccontextmanager
async def _alone(database: Database, account: Account) -> AsyncIterator[None]:
    """Be the only one who logs this account in, or runs it."""
    locks = await LockSession.open(database.address, answer_within=_LOCK_SECONDS)
    try:
        if not await locks.try_account(account.id):
            raise UserError(
                f"account {account.id} is in use by a worker, or by another login",
                remedy=f"let that login end, or have the worker let go of it: worker accounts disable"
                f" {account.id}; then run: worker accounts login {account.id} --again",
            )
        yield
    finally:
        await locks.close()


@contextlib.asynccontextmanager
async def _connected(gateway: Gateway) -> AsyncIterator[Gateway]:
    try:
        await gateway.connect()
        yield gateway
    finally:
        await gateway.close()
