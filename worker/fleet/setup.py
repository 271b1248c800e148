"""Making accounts and channels known: what has to happen before the fleet can work."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

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


async def log_in(
    database: Database,
    sealer: Sealer,
    server: Server,
    phone: str,
    *,
    governance: Governance,
    ask_code: Callable[[], Awaitable[str]],
    deadline: float,
) -> Account:
    """Log an account in with the code it is sent, keep its session, and note the channels it sees."""
    account = await accounts.add_account(database, phone)
    permission = governance.permission(account.id, urgent=True)
    async with _connected(Gateway(server, permission=permission, deadline=deadline)) as gateway:
        code_hash = await gateway.request_code(phone)
        await gateway.sign_in(phone, code_hash, await ask_code())
        me = await gateway.me()
        await accounts.save_login(database, sealer, account.id, StoredSession(*gateway.session), me)
        await channels.record_seen(database, account.id, await gateway.channels())
    return await accounts.add_account(database, phone)


@contextlib.asynccontextmanager
async def _connected(gateway: Gateway) -> AsyncIterator[Gateway]:
    try:
        await gateway.connect()
        yield gateway
    finally:
        await gateway.close()
