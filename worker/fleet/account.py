"""One account's work in one process: lease, login, what was begun, what is new."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way
from worker.errors import AccountUnusableError, FleetError, LeaseLostError
from worker.fleet.governance import chat_paces
from worker.fleet.lease import Lease, lease_account
from worker.fleet.operations import reporting
from worker.fleet.operations_text import needs_login_text
from worker.fleet.progress import recording
from worker.fleet.requests import serving_requests
from worker.fleet.rounds import Rounds
from worker.flow.outbox import Outbox
from worker.flow.outbox_ops import Lane
from worker.log import bound, get_logger
from worker.pipeline.deps import Deps
from worker.pipeline.posting import Posting, PostingTransport
from worker.recovery.account import Extent, recover_account
from worker.recovery.findings import Findings
from worker.store import accounts, channels, proxies, sets, workers
from worker.store.account_secrets import forget_key, keep_key
from worker.telegram.connections import TransferBounds
from worker.telegram.gateway import Gateway
from worker.telegram.storage import OtherKeys
from worker.telegram.tether import Tether

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.fleet.process import Process
    from worker.store.accounts import Account, StoredSession
    from worker.store.database import Database
    from worker.store.sealing import Sealer

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Mode:
    """How much an account does: all of it, once or for ever, or only what a crash left behind."""

    once: bool
    new_work: bool = True
    recovery: Extent = field(default_factory=Extent)


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one account's run."""

    account_id: int
    outcome: str
    reason: str = ""
    findings: Findings = field(default_factory=Findings)


async def run_account(process: Process, account: Account, mode: Mode) -> Report:
    """Lease the account and work with it until there is nothing to do or the process stops."""
    with bound(account=account.id):
        async with lease_account(
            process.database, process.clock, process.settings.lease, account.id, process.worker_id
        ) as lease:
            if lease is None:
                return elsewhere(account.id)
            return await _run_leased(process, account, lease, mode)


async def _run_leased(process: Process, account: Account, lease: Lease, mode: Mode) -> Report:
    run_id = await workers.start_run(process.database, process.worker_id, account.id)
    outcome, reason, report = "failed", "", Report(account.id, "finished")
    try:
        async with connected(process, account, lease, run_id) as deps, serving_requests(process, deps):
            report = await _work(process, deps, mode)
        outcome = "stopped" if process.stopping.is_set() else "finished"
    except AccountUnusableError as error:
        if await accounts.mark_needs_login(process.database, account.id, error.what):
            process.desk.alert(needs_login_text(account, str(error)))
        reason = str(error)
        raise
    except FleetError as error:
        reason = str(error)
        raise
    except asyncio.CancelledError:
        outcome, reason = "stopped", "stopped before the work was done"
        raise
    finally:
        if lease.is_trusted:
            if not mode.recovery.dry_run:
                # Whatever was under way is nobody's now.
                await sets.release_claims_of(process.database, account.id)
            await workers.end_run(process.database, run_id, outcome, reason or None)
    return replace(report, outcome=outcome)


async def gateway_of(process: Process, account: Account, lease: Lease, session: StoredSession) -> Gateway:
    """The account's way to Telegram, not yet connected, tied to its lease."""
    transfer = process.settings.transfer
    proxy = await proxies.load(process.database, process.sealer, account.id)
    keeper = _KeyKeeper(process.database, process.sealer, account.id)
    return Gateway(
        replace(process.server, proxy=proxy),
        permission=process.governance.permission(account.id, premium=account.is_premium),
        deadline=process.settings.telegram.call_timeout_secs,
        dc_id=session.dc_id,
        auth_key=session.auth_key,
        other_keys=OtherKeys(dict(session.other_keys), keeper),
        on_update=process.wake.ring,
        tether=Tether(lease.require_time, lease.require, process.settings.lease.disconnect_secs),
        bounds=TransferBounds(transfer.parts_in_flight, transfer.connections),
    )


@dataclass(frozen=True, slots=True)
class _KeyKeeper:
    """Keeps an account's keys of other data centres in the database."""

    database: Database
    sealer: Sealer
    account_id: int

    async def keep(self, dc_id: int, key: bytes) -> None:
        await keep_key(self.database, self.sealer, self.account_id, dc_id, key)

    async def forget(self, dc_id: int) -> None:
        await forget_key(self.database, self.account_id, dc_id)


@contextlib.asynccontextmanager
async def connected(process: Process, account: Account, lease: Lease, run_id: int) -> AsyncIterator[Deps]:
    """Everything that working with a leased account takes, for the length of the block."""
    session = await accounts.load_session(process.database, process.sealer, account.id)
    gateway = await gateway_of(process, account, lease, session)
    lease.on_lost = gateway.abort
    try:
        await gateway.connect()
        me = await gateway.me()
        await accounts.save_me(process.database, account.id, me)
        await channels.record_seen(process.database, account.id, await gateway.channels())
        account = replace(account, is_premium=me.is_premium, telegram_user_id=me.user_id)
        transport = PostingTransport(gateway, lease)
        async with (
            # Outermost, so that the last word is said when all work is done.
            reporting(process, account, gateway, lease) as reporter,
            recording(process.database, account.id, reporter, process.clock) as watcher,
            _open_outbox(process, transport) as outbox,
        ):
            gateway.on_write.append(lambda chat: outbox.left(Lane(account.id, chat)))
            yield Deps(
                settings=process.settings,
                database=process.database,
                account=account,
                worker_id=process.worker_id,
                run_id=run_id,
                gateway=gateway,
                locks=lease.locks,
                trust=lease,
                lanes=process.lanes,
                workspace=process.workspace,
                nursery=process.nursery,
                clock=process.clock,
                watcher=watcher,
                outbox=outbox,
                transport=transport,
            )
    finally:
        await gateway.close()


@contextlib.asynccontextmanager
async def _open_outbox(process: Process, transport: PostingTransport) -> AsyncIterator[Outbox[Posting]]:
    outbox = Outbox(transport, paces=chat_paces(process.settings.rate_limits), clock=process.clock)
    try:
        yield outbox
    finally:
        # Whoever waits for a ticket was cancelled before this; nothing is left to drain.
        await outbox.close()


async def _work(process: Process, deps: Deps, mode: Mode) -> Report:
    """What was begun comes before anything new."""
    obstacle = None
    rounds = Rounds(process, deps, once=mode.once)
    findings = Findings()
    while True:
        if not mode.recovery.dry_run:
            # Between rounds nobody works on anything: a claim that is left had its answer lost on the way.
            await sets.release_claims_of(deps.database, deps.account.id)
        # A person who asks for recovery means it; a pause is for what the fleet does by itself.
        resting = mode.new_work and await _is_paused(process, deps)
        if resting:
            log.info("account.rests")
        else:
            findings.merge(await recover_account(deps, mode.recovery))
        if mode.new_work and not resting:
            obstacle = await rounds.run()
        if mode.once or process.stopping.is_set():
            return Report(deps.account.id, "finished", str(obstacle or ""), findings=findings)
        await rounds.rest(await _until_next_round(process, deps))


async def _is_paused(process: Process, deps: Deps) -> bool:
    return in_the_way(await process.pauses.pauses(), deps.account.id, None) is not None


async def _until_next_round(process: Process, deps: Deps) -> float:
    """A pause that ends by itself should not last a cycle longer."""
    left = [pause.seconds_left for pause in await process.pauses.pauses() if pause.seconds_left]
    return min(deps.settings.fleet.cycle_secs, *left) if left else deps.settings.fleet.cycle_secs


def elsewhere(account_id: int) -> Report:
    """No run, since it is not this worker's turn."""
    return Report(account_id, "elsewhere", "another worker runs it")


def explain(account_id: int, error: BaseException) -> Report:
    """A run that ended by an error, as a report."""
    if isinstance(error, LeaseLostError):
        return Report(account_id, "lost", str(error))
    if isinstance(error, FleetError):
        return Report(account_id, "failed", str(error))
    return Report(account_id, "bug", repr(error))
