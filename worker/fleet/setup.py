"""Making accounts and channels known: what has to happen before the fleet can work."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from worker.store import accounts, channels
from worker.store.accounts import StoredSession
from worker.telegram.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from worker.domain.telegram import ChannelInfo
    from worker.store.accounts import Account
    from worker.store.database import Database
    from worker.store.sealing import Sealer
    from worker.telegram.client import Server


async def log_in(
    database: Database,
    sealer: Sealer,
    server: Server,
    phone: str,
    *,
    ask_code: Callable[[], Awaitable[str]],
    deadline: float,
) -> Account:
    """Log an account in with the code it is sent, keep its session, and note the channels it sees."""
    account = await accounts.add_account(database, phone)
    async with _connected(Gateway(server, deadline=deadline)) as gateway:
        code_hash = await gateway.request_code(phone)
        await gateway.sign_in(phone, code_hash, await ask_code())
        me = await gateway.me()
        await accounts.save_login(database, sealer, account.id, StoredSession(*gateway.session), me)
        await channels.record_seen(database, account.id, await gateway.channels())
    return await accounts.add_account(database, phone)


async def look_around(
    database: Database, sealer: Sealer, server: Server, account: Account, *, deadline: float
) -> list[ChannelInfo]:
    """Note the channels that a logged-in account sees now."""
    session = await accounts.load_session(database, sealer, account.id)
    gateway = Gateway(server, deadline=deadline, dc_id=session.dc_id, auth_key=session.auth_key)
    async with _connected(gateway):
        seen = await gateway.channels()
        await channels.record_seen(database, account.id, seen)
    return seen


@contextlib.asynccontextmanager
async def _connected(gateway: Gateway) -> AsyncIterator[Gateway]:
    try:
        await gateway.connect()
        yield gateway
    finally:
        await gateway.close()
