"""Logging accounts in: what has to happen before the fleet can work with them.

A login is kept, encrypted, from the moment Telegram has sent a code: whoever is interrupted goes on where it
stopped. Neither code nor password is ever written down. A login owns its account as a worker does, by a lease
with which it ends, and says last of all, when its connection is closed, that the account may be connected.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.clock import SystemClock
from worker.errors import (
    AccountBannedError,
    AccountUnusableError,
    CommitUnknownError,
    FenceLostError,
    FleetError,
    LeaseLostError,
    NotBeforeError,
    PasswordNeededError,
    RefusedError,
    RetryableError,
)
from worker.fleet.governance import open_governance
from worker.fleet.lease import lease_account, silence_of
from worker.fleet.login_trouble import explain, in_use, interrupted, is_expired, is_wrong
from worker.fleet.old_session import end_old_session, session_before, session_begun
from worker.fleet.presence import own_memory, signed_on
from worker.fleet.process import open_sealer, telegram_server
from worker.store import accounts, channels, pending_logins, workers
from worker.store.accounts import StoredSession
from worker.store.pending_logins import PendingLogin
from worker.telegram.authorising import check_password, is_logged_in, request_code, sign_in
from worker.telegram.failures import KeyDeniedError
from worker.telegram.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from worker.clock import Clock
    from worker.config.settings import LeaseSettings, Settings
    from worker.domain.telegram import ChannelInfo, Me
    from worker.fleet.governance import Governance
    from worker.fleet.lease import Lease
    from worker.store.accounts import Account
    from worker.store.database import Database
    from worker.store.leases import Tenure
    from worker.store.sealing import Sealer
    from worker.store.silence import Silence
    from worker.telegram.client import Server

    Ask = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Login:
    """What every login needs. ``tries`` is how often a wrong answer is asked for again."""

    database: Database
    sealer: Sealer
    server: Server
    governance: Governance
    deadline: float
    worker_id: uuid.UUID
    lease_settings: LeaseSettings
    clock: Clock
    silence: Silence
    tries: int = 1
    tell: Callable[[str], None] = lambda _: None

    def lease(self, account_id: int) -> AbstractAsyncContextManager[Lease | None]:
        """Own the account for the length of the block; None if a worker, or another login, does."""
        return lease_account(
            *(self.database, self.clock, self.lease_settings, account_id, self.worker_id),
            *(self.tell, self.silence),
        )


@dataclass(frozen=True, slots=True)
class _Finished:
    """What a login came to."""

    session: StoredSession
    me: Me
    seen: list[ChannelInfo]


@contextlib.asynccontextmanager
async def open_login(
    settings: Settings,
    database: Database,
    *,
    sealer: Sealer | None = None,
    tries: int = 1,
    tell: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Login]:
    """What logins take, for the length of the block, in which the fleet knows of this process."""
    clock, worker_id = SystemClock(), uuid.uuid4()
    async with (
        open_governance(database, settings.rate_limits, clock) as governance,
        signed_on(
            *(database, worker_id, clock),
            every=settings.lease.heartbeat_secs,
            address=settings.telegram.bind_address,
            say_alive=lambda: workers.heartbeat(database, worker_id, own_memory()),
        ),
    ):
        yield Login(
            database,
            sealer or open_sealer(settings),
            telegram_server(settings),
            governance,
            settings.telegram.call_timeout_secs,
            worker_id,
            settings.lease,
            clock,
            silence_of(database, clock, settings.lease),
            tries,
            tell,
        )


async def log_in(
    login: Login, phone: str, *, ask_code: Ask, ask_password: Ask, anew: bool = False
) -> Account:
    """Log an account in with what it is asked for, keep its session, and note the channels it sees.

    ``anew`` leaves a login that was begun before where it stands, and has another code sent.
    """
    account = await accounts.add_account(login.database, phone)
    tenure: Tenure | None = None
    try:
        async with login.lease(account.id) as lease:
            if lease is None:
                raise in_use(account.id)
            tenure = lease.tenure
            if anew:
                # Its key is written over as soon as another code is sent.
                await end_old_session(login, account, lease, await session_begun(login, account))
            pending = None if anew else await pending_logins.load(login.database, login.sealer, account.id)
            old = await session_before(login, account)
            try:
                await _go_on(login, account, lease, pending, ask_code, ask_password)
            except (AccountUnusableError, KeyDeniedError):
                # What is given up is a login that was begun, no session that an account works with.
                if pending is None:
                    raise
                # What was begun has lapsed at Telegram, perhaps with its key.
                login.tell("The login that was begun has lapsed.")
                await _go_on(login, account, lease, None, ask_code, ask_password)
            await end_old_session(login, account, lease, old)
    except LeaseLostError as error:
        raise interrupted(account.id, error) from error
    except (AccountUnusableError, RefusedError, NotBeforeError, RetryableError, CommitUnknownError) as error:
        if tenure is not None:
            await _note_end(login, tenure, error)
        raise explain(account.id, error) from error
    return await accounts.add_account(login.database, phone)


async def _go_on(
    login: Login,
    account: Account,
    lease: Lease,
    pending: PendingLogin | None,
    ask_code: Ask,
    ask_password: Ask,
) -> None:
    """Bring a login to its end, with the key that it was begun with; a fresh one agrees on another."""
    gateway = Gateway(
        login.server,
        permission=login.governance.permission(account.id, urgent=True),
        deadline=login.deadline,
        dc_id=pending.dc_id if pending else None,
        auth_key=pending.auth_key if pending else None,
        tether=lease.tether,
    )
    lease.on_lost = gateway.abort
    async with _connected(gateway):
        steps = _Steps(login, account, lease.tenure, gateway, ask_code, ask_password)
        finished = await steps.run(pending)
    await channels.record_seen(login.database, account.id, finished.seen)
    await accounts.save_login(login.database, login.sealer, lease.tenure, finished.session, finished.me)


async def _note_end(login: Login, tenure: Tenure, error: FleetError) -> None:
    """Some refusals end a login for good: there is nothing to go on with."""
    if isinstance(error, AccountBannedError) or "PHONE_NUMBER_BANNED" in error.what:
        await accounts.mark(login.database, tenure, "banned", error.what)
        return
    is_no_number = "PHONE_NUMBER_UNOCCUPIED" in error.what or "PHONE_NUMBER_INVALID" in error.what
    if is_no_number:
        await accounts.mark(login.database, tenure, "new", None)


class _Steps:
    """One login, from wherever it stands to its end."""

    def __init__(
        self,
        login: Login,
        account: Account,
        tenure: Tenure,
        gateway: Gateway,
        ask_code: Ask,
        ask_password: Ask,
    ) -> None:
        self._login = login
        self._account = account
        self._tenure = tenure
        self._gateway = gateway
        self._ask_code = ask_code
        self._ask_password = ask_password

    async def run(self, pending: PendingLogin | None) -> _Finished:
        try:
            # A session may be logged in without anybody having heard of it.
            if pending is None or not await is_logged_in(self._gateway):
                if pending is not None and pending.awaits_password:
                    raise AccountUnusableError("Telegram does not know this login any more")
                await self._give_code(pending)
        except PasswordNeededError:
            assert pending is not None
            self._login.tell("Telegram has accepted the code; the password is missing.")
            await self._keep(pending.code_hash, awaits_password=True)
            await self._give_password()
        me = await self._gateway.me()
        seen = await self._gateway.channels()
        return _Finished(StoredSession(*self._gateway.session), me, seen)

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
                    await pending_logins.drop(self._login.database, self._tenure)
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
        await pending_logins.save(self._login.database, self._login.sealer, self._tenure, pending)
        state = "awaiting_password" if awaits_password else "awaiting_code"
        if not await accounts.mark(self._login.database, self._tenure, state, None):
            raise FenceLostError(f"account {self._account.id} has another owner by now")
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


@contextlib.asynccontextmanager
async def _connected(gateway: Gateway) -> AsyncIterator[Gateway]:
    try:
        await gateway.connect()
        yield gateway
    finally:
        await gateway.close()
