"""All accounts at once: one task each, none of which can stop or delay another."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from worker.errors import FleetError, UserError
from worker.fleet.account import Mode, Report, elsewhere, explain, run_account
from worker.fleet.crowded_host import share
from worker.fleet.pausing import wake_when_told
from worker.fleet.process import say_alive
from worker.fleet.shift import Shift
from worker.fleet.upkeep import keep_clean
from worker.fleet.watchdog import watched_loop
from worker.log import get_logger
from worker.recovery.leftovers import Swept, sweep
from worker.store import workers
from worker.store.accounts import ready_accounts
from worker.store.destinations import has_destination
from worker.store.notifications import listen
from worker.store.requests import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from worker.fleet.process import Process
    from worker.store.accounts import Account

log = get_logger(__name__)


async def run_fleet(process: Process, mode: Mode, only: Collection[str] = ()) -> list[Report]:
    """Work with this worker's share of the ready accounts (or only with those of these phone numbers).

    The share changes as workers come and go. Recovery alone asks for every account that nobody runs.
    """
    if mode.recovery.dry_run:
        return await _run_once(process, mode, await _choose(process, mode, only))
    await sweep_leftovers(process)
    chores = [
        asyncio.create_task(_keep_sweeping(process), name="sweep"),
        asyncio.create_task(keep_clean(process), name="clean up"),
        asyncio.create_task(wake_when_told(process), name="hear of people"),
        asyncio.create_task(_warm(process), name="warm the parsers"),
        asyncio.create_task(
            share(process.database, process.crowding, process.clock), name="share what crowds the host"
        ),
        asyncio.create_task(
            listen(process.database.address, REQUESTS, lambda _: process.bell.ring(), process.clock),
            name="hear of requests",
        ),
    ]
    try:
        chosen = await _choose(process, mode, only)
        with watched_loop(process.settings.lease.lease_secs / 3):
            if not mode.new_work:
                return await _run_once(process, mode, chosen)
            reports = await _run_shift(process, mode, only)
        missed = [account.id for account in chosen if mode.once and account.id not in reports]
        reports |= {account_id: elsewhere(account_id) for account_id in missed}
        return [reports[account_id] for account_id in sorted(reports)]
    finally:
        await _end(chores)
        await sweep_leftovers(process)


async def _warm(process: Process) -> None:
    try:
        await process.nursery.warm()
    except FleetError as error:
        # Whoever needs them tries again, and says so.
        log.warning("parsers.not_started", reason=str(error))


async def _end(chores: list[asyncio.Task[None]]) -> None:
    for chore in chores:
        chore.cancel()
    for ended in await asyncio.gather(*chores, return_exceptions=True):
        if isinstance(ended, Exception):
            log.error("chore.broke", error=repr(ended))


async def _choose(process: Process, mode: Mode, only: Collection[str]) -> list[Account]:
    chosen = [
        account
        for account in await ready_accounts(process.database)
        # An account whose work is to be taken over is locked by whoever takes it, not run.
        if (not only or account.phone in only) and account.id not in mode.recovery.take_over
    ]
    if not chosen and only:
        raise UserError("none of these accounts is logged in and enabled", remedy="see: worker accounts list")
    if not chosen:
        raise UserError("no account is logged in and enabled", remedy="run: worker accounts add PHONE")
    if mode.new_work and not await has_destination(process.database):
        raise UserError("no destination channel is set", remedy="run: worker channels destination CHANNEL")
    return chosen


async def _run_once(process: Process, mode: Mode, chosen: list[Account]) -> list[Report]:
    tasks = [asyncio.create_task(run_account(process, account, mode)) for account in chosen]

    def cancel_all() -> None:
        for task in tasks:
            task.cancel()

    with _signals(process, cancel_all):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    return [
        result if isinstance(result, Report) else explain(account.id, result)
        for account, result in zip(chosen, results, strict=True)
    ]


async def _run_shift(process: Process, mode: Mode, only: Collection[str]) -> dict[int, Report]:
    # A worker that is bound to certain accounts takes no share of the others.
    process.shares_accounts = not only
    await say_alive(process)
    if process.shares_accounts:
        await workers.ask_to_share(process.database)
    shift = Shift(process, mode, only)
    with _signals(process, shift.cancel):
        await shift.work()
    process.shares_accounts = False
    await say_alive(process)
    return shift.reports


async def sweep_leftovers(process: Process) -> Swept:
    """Put right what dead processes left, as far as it takes no account."""
    silent = process.settings.lease.lease_secs
    swept = await sweep(process.database, process.workspace, process.worker_id, silent_seconds=silent)
    if swept != Swept():
        log.info(
            "recovery.swept",
            runs=swept.runs_closed,
            claims=swept.claims_released,
            folders=swept.folders_removed,
            reservations=swept.reservations_dropped,
        )
    return swept


async def _keep_sweeping(process: Process) -> None:
    while True:
        await process.clock.sleep(process.settings.lease.lease_secs)
        try:
            await sweep_leftovers(process)
        except Exception:
            log.exception("recovery.sweep_failed")


@contextlib.contextmanager
def _signals(process: Process, cancel_all: Callable[[], None]) -> Iterator[None]:
    """The first signal lets running sets finish within the drain time, the second one ends them at once."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if process.stopping.is_set():
            cancel_all()
            return
        log.info("worker.stopping", drain_seconds=process.settings.fleet.drain_secs)
        process.stop()
        loop.call_later(process.settings.fleet.drain_secs, cancel_all)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # The loop puts the default in its place, which ends the process before anything is closed.
            signal.signal(number, handler)
