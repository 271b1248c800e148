"""The accounts that this process runs at present: taken, yielded and taken again as workers come and go.

Contract. ``run`` lasts until the process stops. ``run --once`` lasts until each account has been brought to
the end of its work since the shift began, by whichever worker, or runs at a worker that need not yield it. It
goes by the accounts' locks: what a dead worker held is taken at once, not when its silence is noticed.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker.domain.shares import fair_share, preferred
from worker.errors import FleetError
from worker.fleet.account import Mode, Report, elsewhere, explain, run_account
from worker.log import get_logger
from worker.store import workers
from worker.store.roster import Moment, SharedOut, finished_since, shared_out, this_moment

if TYPE_CHECKING:
    from collections.abc import Collection

    from worker.fleet.bell import Ring
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
    """Runs accounts. One account's end, whatever its reason, is nobody else's."""

    def __init__(self, process: Process, mode: Mode, only: Collection[str] = ()) -> None:
        self._process = process
        self._mode = mode
        self._only = only
        self._running: dict[int, _Running] = {}
        self._not_before: dict[int, float] = {}
        self.reports: dict[int, Report] = {}
        self._has_said = False

    async def work(self) -> None:
        """Look at regular intervals who runs what, and take or yield accounts accordingly."""
        try:
            began = await this_moment(self._process.database) if self._mode.once else None
            while not self._process.stopping.is_set():
                company = self._process.company.next_ring()
                view = await self._look(began)
                if self._mode.once and self._is_over(view):
                    return
                await self._until_something_happens(company)
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

    async def _look(self, began: Moment | None) -> SharedOut | None:
        """Take and yield; how the accounts that are left to work with are shared out, if that is known."""
        yielded = self._collect()
        try:
            if yielded:
                await workers.ask_to_share(self._process.database)
            view = await self._view(began)
        except FleetError as error:
            if self._mode.once and not self._running and not self.reports:
                raise
            log.warning("accounts.unknown", reason=str(error))
            return None
        ready = {account.id for account, _ in view.accounts}
        self._let_go([account_id for account_id in self._running if account_id not in ready])
        wanted = self._wanted(view)
        staying = [number for number, one in self._running.items() if not one.process.stopping.is_set()]
        if len(staying) > wanted:
            self._let_go(staying[wanted:])
        for account in self._candidates(view)[: max(0, wanted - len(staying))]:
            self._take(account)
        self._say_if_idle(view)
        return view

    def _say_if_idle(self, view: SharedOut) -> None:
        """Say once, at the start, why there is nothing to do. A killed worker counts for a while."""
        if self._running or self._mode.once or self._has_said:
            return
        self._has_said = True
        silent = self._process.settings.lease.lease_secs
        if any(holder is not None for _, holder in view.accounts):
            self._process.tell(
                "other workers run the accounts; this one takes its share when they yield, or have been"
                f" silent for {math.ceil(silent)} s"
            )

    async def _view(self, began: Moment | None) -> SharedOut:
        database, silent = self._process.database, self._process.settings.lease.lease_secs
        # Whoever is silent by now need not be waited for from the beginning once its account is to be had.
        await self._process.silence.listen()
        view = await shared_out(database, silent_seconds=silent, locked=began is not None)
        if began is None:
            return view
        done = self._done() | await finished_since(database, began)
        still = [each for each in view.accounts if each[0].id in self._running or each[0].id not in done]
        return replace(view, accounts=still)

    def _done(self) -> set[int]:
        """The accounts that this process has worked with, whatever came of it."""
        return {number for number, report in self.reports.items() if report.outcome != "elsewhere"}

    def _is_over(self, view: SharedOut | None) -> bool:
        """Whether nothing is left to run once, nor to wait for."""
        if self._running or view is None:
            return not self._running
        mine = [each for each in view.accounts if not self._only or each[0].phone in self._only]
        if any(holder in (None, self._process.worker_id) for _, holder in mine):
            return False
        # The others yield until everyone has a share. Who has had something already does not wait for more.
        to_share = [holder for _, holder in mine if holder in view.sharers]
        return bool(self._only or self._done() or len(to_share) < len(view.sharers))

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

    def _collect(self) -> bool:
        """Take down how the accounts ended whose work is over; whether one of them is for others now."""
        yielded = False
        for account_id, running in list(self._running.items()):
            if running.task.done():
                del self._running[account_id]
                report = _report_of(account_id, running.task)
                if report.outcome == "stopped" and not self._process.stopping.is_set():
                    report, yielded = elsewhere(account_id), True
                self.reports[account_id] = report
                settings = self._process.settings.lease
                failed = report.outcome in ("failed", "bug", "lost")
                wait = _RETRY_ACCOUNT_SECONDS if failed else settings.heartbeat_secs
                self._not_before[account_id] = self._process.clock.monotonic() + wait
        return yielded

    async def _until_something_happens(self, company: Ring) -> None:
        longest = self._process.settings.lease.heartbeat_secs
        signs = [
            asyncio.ensure_future(self._process.stopping.wait()),
            asyncio.ensure_future(company.within(longest)),
        ]
        try:
            accounts = (running.task for running in self._running.values())
            await asyncio.wait([*signs, *accounts], timeout=longest, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for sign in signs:
                sign.cancel()


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
