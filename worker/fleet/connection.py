"""Connecting a leased account: its way to Telegram, and everything that working with it takes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker.fleet.governance import chat_paces
from worker.fleet.operations import reporting
from worker.fleet.progress import recording
from worker.flow.outbox import Outbox
from worker.flow.outbox_ops import Lane
from worker.pipeline.deps import Deps, Standing
from worker.pipeline.posting import Posting, PostingTransport
from worker.store import accounts, channels, proxies
from worker.store.account_secrets import forget_key, keep_key
from worker.telegram.connections import TransferBounds
from worker.telegram.gateway import Gateway
from worker.telegram.storage import OtherKeys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.fleet.lease import Lease
    from worker.fleet.process import Process
    from worker.pipeline.deps import Watcher
    from worker.store.accounts import Account, StoredSession
    from worker.store.database import Database
    from worker.store.leases import Tenure
    from worker.store.sealing import Sealer
    from worker.telegram.tether import Tether


async def gateway_of(
    process: Process, account: Account, lease: Lease, session: StoredSession, standing: Standing | None = None
) -> Gateway:
    """The account's way to Telegram, not yet connected, tied to its lease: cut when that is lost."""
    transfer = process.settings.transfer
    proxy = await proxies.load(process.database, process.sealer, account.id)
    keeper = _KeyKeeper(process.database, process.sealer, lease.tenure)
    gateway = Gateway(
        replace(process.server, proxy=proxy),
        permission=process.governance.permission(account.id, standing),
        deadline=process.settings.telegram.call_timeout_secs,
        dc_id=session.dc_id,
        auth_key=session.auth_key,
        other_keys=OtherKeys(dict(session.other_keys), keeper),
        on_update=process.wake.ring,
        tether=_tether(process, lease, is_direct=proxy is None),
        bounds=TransferBounds(transfer.parts_in_flight, transfer.connections),
        doubts=process.doubts,
    )
    lease.on_lost = gateway.abort
    return gateway


def _tether(process: Process, lease: Lease, *, is_direct: bool) -> Tether:
    if not is_direct:
        # Telegram sees the proxy's address, whose connections nobody here counts.
        return lease.tether
    return replace(lease.tether, wait_to_dial=process.crowding.seconds_left, crowded=process.crowding.refused)


@dataclass(frozen=True, slots=True)
class _KeyKeeper:
    """Keeps an account's keys of other data centres in the database."""

    database: Database
    sealer: Sealer
    tenure: Tenure

    async def keep(self, dc_id: int, key: bytes) -> None:
        await keep_key(self.database, self.sealer, self.tenure, dc_id, key)

    async def forget(self, dc_id: int) -> None:
        await forget_key(self.database, self.tenure, dc_id)


@contextlib.asynccontextmanager
async def connected(
    process: Process, account: Account, lease: Lease, run_id: int | None
) -> AsyncIterator[Deps]:
    """Everything that working with a leased account takes, for the length of the block.

    Without a run it is only a look: nothing of the visit is kept, and the operations chat hears of none.
    """
    session = await accounts.load_session(process.database, process.sealer, account.id)
    standing = Standing(is_premium=account.is_premium)
    gateway = await gateway_of(process, account, lease, session, standing)
    try:
        await gateway.connect()
        me = await gateway.me()
        if run_id is not None:
            await accounts.save_me(process.database, lease.tenure, me)
            seen = await gateway.channels()
            await channels.record_seen(process.database, account.id, seen, connecting=True)
        standing.is_premium = me.is_premium
        account = replace(account, is_premium=me.is_premium, telegram_user_id=me.user_id)
        transport = PostingTransport(gateway, lease)
        async with (
            # Outermost, so that the last word is said when all work is done.
            _watching(process, account, gateway, lease, run_id) as watcher,
            _open_outbox(process, transport) as outbox,
        ):
            gateway.on_write.append(lambda chat: outbox.left(Lane(account.id, chat)))
            yield Deps(
                settings=process.settings,
                database=process.database,
                account=account,
                standing=standing,
                worker_id=process.worker_id,
                run_id=run_id,
                gateway=gateway,
                locks=lease.locks,
                silence=process.silence,
                trust=lease,
                lanes=process.lanes,
                tries=process.tries,
                workspace=process.workspace,
                nursery=process.nursery,
                clock=process.clock,
                looked_through=process.lookout.channels,
                watcher=watcher,
                outbox=outbox,
                transport=transport,
            )
    finally:
        await gateway.close()


@contextlib.asynccontextmanager
async def _watching(
    process: Process, account: Account, gateway: Gateway, lease: Lease, run_id: int | None
) -> AsyncIterator[Watcher]:
    """Whoever is told what the account does."""
    if run_id is None:
        # The chat and the record of progress both do away with what an earlier run left there.
        yield process.watcher
        return
    async with (
        reporting(process, account, gateway, lease) as reporter,
        recording(process.database, account.id, reporter, process.clock) as watcher,
    ):
        yield watcher


@contextlib.asynccontextmanager
async def _open_outbox(process: Process, transport: PostingTransport) -> AsyncIterator[Outbox[Posting]]:
    outbox = Outbox(transport, paces=chat_paces(process.settings.rate_limits), clock=process.clock)
    try:
        yield outbox
    finally:
        # Whoever waits for a ticket was cancelled before this; nothing is left to drain.
        await outbox.close()
