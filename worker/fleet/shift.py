"""The accounts that this process runs at present: taken, yielded and taken again as workers come and go."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker.domain.shares import fair_share, preferred
from worker.errors import FleetError
from worker.fleet.account import Mode, Report, explain, run_account
from worker.log import get_logger
from worker.store.roster import SharedOut, shared_out

if TYPE_CHECKING:
    from collections.abc import Collection

    from worker.fleet.process import Process
    from worker.store.accounts import Account

log = get_logger(__name__)
_RETRY_ACCOUNT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class _Running:
    """An account at work, and the process as it sees it: with an end of its own."""

    process: Process
    task: asyncio.Task[Report]


class Shift:
    """Runs accounts until the process stops. One account's end, whatever its reason, is nobody else's."""

    def __init__(self, process: Process, mode: Mode, only: Collection[str] = ()) -> None:
        self._process = process
        self._mode = mode
        self._only = only
        self._running: dict[int, _Running] = {}
        self._not_before: dict[int, float] = {}
        self.reports: dict[int, Report] = {}

    async def work(self) -> None:
        """Look at regular intervals who runs what, and take or yield accounts accordingly."""
        try:
            while not self._process.stopping.is_set():
                await self._look()
                await self._until_something_happens()
            self._let_go(list(self._running))
            while self._running:
                await asyncio.wait([running.task for running in self._running.values()])
                self._collect()
        finally:
            self.cancel()
            await asyncio.gather(
                *(running.task for running in self._running.values()), return_exceptions=True
            )
            self._collect()

    def cancel(self) -> None:
        """End every account's work at once."""
        for running in self._running.values():
            running.task.cancel()

    async def _look(self) -> None:
        self._collect()
        silent = self._process.settings.lease.lease_secs
        try:
            view = await shared_out(self._process.database, silent_seconds=silent)
        except FleetError as error:
            log.warning("accounts.unknown", reason=str(error))
            return
        ready = {account.id for account, _ in view.accounts}
        self._let_go([account_id for account_id in self._running if account_id not in ready])
        wanted = self._wanted(view)
        staying = [number for number, one in self._running.items() if not one.process.stopping.is_set()]
        if len(staying) > wanted:
            self._let_go(staying[wanted:])
        for account in self._candidates(view)[: max(0, wanted - len(staying))]:
            self._take(account)

    def _wanted(self, view: SharedOut) -> int:
        me = self._process.worker_id
        if self._only:
            return len(view.accounts)
        if me not in view.sharers:
            # Our own heartbeat is late: others may count without us, so nothing more is taken.
            return len(self._running)
        held = dict.fromkeys(view.sharers, 0)
        free = outside = 0
        for account, holder in view.accounts:
            if account.id in self._running:
                held[me] += 1
            elif holder is None:
                free += 1
            elif holder in held:
                held[holder] += holder != me
            else:
                outside += 1
        return fair_share(held, me, accounts=len(view.accounts) - outside, free=free)

    def _candidates(self, view: SharedOut) -> list[Account]:
        """The accounts that nobody runs, those first that other workers try last."""
        me, now = self._process.worker_id, self._process.clock.monotonic()
        place = view.sharers.index(me) if me in view.sharers else 0
        return [
            account
            for account, holder in preferred(view.accounts, place=place, workers=len(view.sharers))
            if account.id not in self._running
            and holder in (None, me)
            and self._not_before.get(account.id, now) <= now
            and (not self._only or account.phone in self._only)
        ]

    def _take(self, account: Account) -> None:
        own = replace(self._process, stopping=asyncio.Event())
        work = run_account(own, account, self._mode)
        task = asyncio.create_task(work, name=f"account {account.id}")
        self._running[account.id] = _Running(own, task)

    def _let_go(self, account_ids: list[int]) -> None:
        """Begin nothing more with these accounts; what is under way is finished first."""
        for account_id in account_ids:
            running = self._running[account_id]
            if not running.process.stopping.is_set():
                log.info("account.yielded", account=account_id)
                running.process.stop()

    def _collect(self) -> None:
        """Take down how the accounts ended whose work is over."""
        for account_id, running in list(self._running.items()):
            if running.task.done():
                del self._running[account_id]
                report = self.reports[account_id] = _report_of(account_id, running.task)
                settings = self._process.settings.lease
                failed = report.outcome in ("failed", "bug", "lost")
                wait = _RETRY_ACCOUNT_SECONDS if failed else settings.heartbeat_secs
                self._not_before[account_id] = self._process.clock.monotonic() + wait

    async def _until_something_happens(self) -> None:
        stopping = asyncio.ensure_future(self._process.stopping.wait())
        with contextlib.suppress(TimeoutError):
            try:
                await asyncio.wait(
                    [stopping, *(running.task for running in self._running.values())],
                    timeout=self._process.settings.lease.heartbeat_secs,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                stopping.cancel()


def _report_of(account_id: int, task: asyncio.Task[Report]) -> Report:
    if task.cancelled():
        return Report(account_id, "stopped", "stopped before the work was done")
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, FleetError):
        log.warning("account.failed", account=account_id, reason=str(error))
    else:
        # A bug must not take an account out of service until somebody restarts the worker.
        log.error("account.broke", account=account_id, error=repr(error), exc_info=error)
    return explain(account_id, error)
