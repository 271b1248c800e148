"""All accounts at once: one task each, none of which can stop or delay another."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from worker.errors import FleetError, UserError
from worker.fleet.account import Mode, Report, explain, run_account
from worker.fleet.pausing import wake_when_resumed
from worker.fleet.upkeep import keep_clean
from worker.log import get_logger
from worker.recovery.leftovers import Swept, sweep
from worker.store.accounts import ready_accounts
from worker.store.channels import has_destination
from worker.store.notifications import listen
from worker.store.requests import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from worker.fleet.process import Process
    from worker.store.accounts import Account

log = get_logger(__name__)
_RETRY_ACCOUNT_SECONDS = 15.0


async def run_fleet(process: Process, mode: Mode, only: Collection[str] = ()) -> list[Report]:
    """Run every ready account (or only those with these phone numbers) concurrently."""
    if mode.recovery.dry_run:
        return await _run_all(process, mode, only)
    await sweep_leftovers(process)
    chores = [
        asyncio.create_task(_keep_sweeping(process), name="sweep"),
        asyncio.create_task(keep_clean(process), name="clean up"),
        asyncio.create_task(wake_when_resumed(process), name="hear of pauses"),
        asyncio.create_task(
            listen(process.database.address, REQUESTS, process.bell.ring, process.clock),
            name="hear of requests",
        ),
    ]
    try:
        return await _run_all(process, mode, only)
    finally:
        await _end(chores)
        await sweep_leftovers(process)


async def _end(chores: list[asyncio.Task[None]]) -> None:
    for chore in chores:
        chore.cancel()
    for ended in await asyncio.gather(*chores, return_exceptions=True):
        if isinstance(ended, Exception):
            log.error("chore.broke", error=repr(ended))


async def _run_all(process: Process, mode: Mode, only: Collection[str]) -> list[Report]:
    chosen = [
        account
        for account in await ready_accounts(process.database)
        # An account whose work is to be taken over is locked by whoever takes it, not run.
        if (not only or account.phone in only) and account.id not in mode.recovery.take_over
    ]
    if not chosen:
        raise UserError("no account is logged in and enabled", remedy="run: worker accounts add PHONE")
    if mode.new_work and not await has_destination(process.database):
        raise UserError("no destination channel is set", remedy="run: worker channels destination CHANNEL")
    tasks = [asyncio.create_task(_keep_running(process, account, mode)) for account in chosen]
    with _signals(process, tasks):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    return [
        result if isinstance(result, Report) else explain(account.id, result)
        for account, result in zip(chosen, results, strict=True)
    ]


async def sweep_leftovers(process: Process) -> Swept:
    """Put right what dead processes left, as far as it takes no account."""
    swept = await sweep(process.database, process.workspace, silent_seconds=process.settings.lease.lease_secs)
    if swept != Swept():
        log.info(
            "recovery.swept",
            runs=swept.runs_closed,
            claims=swept.claims_released,
            folders=swept.folders_removed,
        )
    return swept


async def _keep_sweeping(process: Process) -> None:
    while True:
        await process.clock.sleep(process.settings.lease.lease_secs)
        try:
            await sweep_leftovers(process)
        except Exception:
            log.exception("recovery.sweep_failed")


async def _keep_running(process: Process, account: Account, mode: Mode) -> Report:
    """Run an account; outside ``once``, come back to it after whatever made it end."""
    while True:
        try:
            report = await run_account(process, account, mode)
        except FleetError as error:
            log.warning("account.failed", account=account.id, reason=str(error))
            report = explain(account.id, error)
        except Exception as error:
            # A bug must not take an account out of service until somebody restarts the worker.
            log.exception("account.broke", account=account.id)
            report = explain(account.id, error)
        if mode.once or process.stopping.is_set():
            return report
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_ACCOUNT_SECONDS):
                await process.stopping.wait()


@contextlib.contextmanager
def _signals(process: Process, tasks: list[asyncio.Task[Report]]) -> Iterator[None]:
    """The first signal lets running sets finish within the drain time, the second one ends them at once."""
    loop = asyncio.get_running_loop()

    def cancel_all() -> None:
        for task in tasks:
            task.cancel()

    def on_signal() -> None:
        if process.stopping.is_set():
            cancel_all()
            return
        log.info("worker.stopping", drain_seconds=process.settings.fleet.drain_secs)
        process.stop()
        loop.call_later(process.settings.fleet.drain_secs, cancel_all)

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
