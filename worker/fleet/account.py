"""One account's work in one process: lease, login, what was begun, what is new."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way
from worker.errors import AccountUnusableError, FleetError, LeaseLostError
from worker.fleet.connection import connected
from worker.fleet.operations_text import unusable_text
from worker.fleet.requests import serving_requests
from worker.fleet.rounds import Rounds
from worker.log import bound, get_logger
from worker.recovery.account import Extent, recover_account
from worker.recovery.findings import Findings
from worker.store import accounts, sets, workers

if TYPE_CHECKING:
    from worker.fleet.lease import Lease
    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.accounts import Account

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
        async with process.lease(account.id) as lease:
            if lease is None:
                return elsewhere(account.id)
            if mode.recovery.dry_run:
                return await _look(process, account, lease, mode.recovery)
            return await _run_leased(process, account, lease, mode)


async def _look(process: Process, account: Account, lease: Lease, extent: Extent) -> Report:
    """A dry run. It begins no run of its own: that would close the one which a dead worker left open."""
    async with connected(process, account, lease, None) as deps, serving_requests(process, deps):
        findings = await recover_account(deps, extent)
    outcome = "stopped" if process.stopping.is_set() else "finished"
    return Report(account.id, outcome, findings=findings)


async def _run_leased(process: Process, account: Account, lease: Lease, mode: Mode) -> Report:
    run_id = await workers.start_run(
        process.database, process.worker_id, account.id, is_errand=not mode.new_work
    )
    outcome, reason, report = "failed", "", Report(account.id, "finished")
    try:
        async with connected(process, account, lease, run_id) as deps, serving_requests(process, deps):
            report = await _work(process, deps, mode)
        outcome = "stopped" if process.stopping.is_set() else "finished"
    except AccountUnusableError as error:
        if await accounts.mark_unusable(process.database, lease.tenure, error.state, error.what):
            process.desk.alert(unusable_text(account, error.state, str(error)))
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
            # Whatever was under way is nobody's now.
            await sets.release_claims_of(process.database, lease.tenure)
            await workers.end_run(process.database, run_id, outcome, reason or None)
    return replace(report, outcome=outcome)


async def _work(process: Process, deps: Deps, mode: Mode) -> Report:
    """What was begun comes before anything new."""
    obstacle = None
    rounds = Rounds(process, deps, once=mode.once)
    findings = Findings()
    while True:
        # Between rounds nobody works on anything: a claim that is left had its answer lost on the way.
        await sets.release_claims_of(deps.database, deps.trust.tenure)
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
