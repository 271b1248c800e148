"""One account's work: sets are taken as its line is free, while its sources are read again on time."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from worker.fleet.ready_sets import ReadySets
from worker.fleet.scanning import scan_all
from worker.flow.backoff import Backoff
from worker.flow.handling import SourceClosedError
from worker.flow.runner import Runner
from worker.log import get_logger
from worker.store import channels, sets
from worker.store.claiming import seconds_to_next

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.errors import UserError
    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim

log = get_logger(__name__)
_JITTER = 0.1
_SHORTEST_REST_SECONDS = 1.0
# A scan that failed is repeated long before the next cycle: whatever woke it is not announced again.
_SCAN_AGAIN = Backoff(first=1.0)


class Rounds:
    """The rounds of one account, and when its sources are due to be read again."""

    def __init__(self, process: Process, deps: Deps, *, once: bool) -> None:
        self._process = process
        self._deps = deps
        self._once = once
        self._scan_at = process.clock.monotonic()
        # The ring since the last scan began: what was posted while it ran is read by another one.
        self._ring = process.wake.next_ring()
        self._scanning = False
        self._failed_scans = 0
        self._told: str | None = None
        self._looked_at = float("-inf")

    async def run(self) -> UserError | None:
        """Work until nothing is claimable and no source is due; what keeps the account from publishing.

        A long backlog starves nothing: the sources are read beside it whenever they are due, and begun
        uploads are finished before the next set is taken.
        """
        deps, look_again = self._deps, asyncio.Event()
        scanning = asyncio.create_task(
            self._keep_scanning(look_again.set), name=f"scan of account {deps.account.id}"
        )
        scanning.add_done_callback(lambda _: look_again.set())
        ready = ReadySets(self._process, deps, lambda: self._scan_is_idle(scanning), look_again)
        runner = Runner(
            ready,
            ready.work_on,
            limit=deps.settings.fleet.sets_in_flight,
            on_error=ready.failed,
            on_timeout=_no_timeout,
            idle=0.0,
            clock=deps.clock,
        )
        try:
            await runner.run()
            if scanning.done():
                scanning.result()
        finally:
            interrupted = self._scanning
            scanning.cancel()
            await asyncio.gather(scanning, return_exceptions=True)
            if interrupted:
                # Whatever the scan was woken for has not been read to its end.
                self._scan_at = self._process.clock.monotonic()
        await self._forget_ended()
        await self._explain(ready.obstacle)
        return ready.obstacle

    async def rest(self, longest: float) -> None:
        """Sleep until a set or a scan is due, something was posted, or ``longest`` seconds are over."""
        due = await seconds_to_next(self._deps.database, self._deps.account.id)
        seconds = min(self._until_scan(), longest, *([due] if due is not None else []))
        if not self._process.stopping.is_set() and await self._ring.within(
            max(_SHORTEST_REST_SECONDS, seconds)
        ):
            self._scan_at = self._process.clock.monotonic()

    async def _keep_scanning(self, found: Callable[[], None]) -> None:
        while not self._process.stopping.is_set():
            if (left := self._until_scan()) > 0:
                await self._ring.within(left)
            self._ring = self._process.wake.next_ring()
            self._scanning = True
            all_read = await scan_all(self._process, self._deps, found)
            self._scan_at = self._process.clock.monotonic() + self._pause_after(all_read=all_read)
            self._scanning = False
            if self._once:
                return

    def _pause_after(self, *, all_read: bool) -> float:
        """Seconds until the next scan, if nothing wakes it before."""
        # Accounts that were started together need not come back together.
        cycle = random.uniform(1 - _JITTER, 1 + _JITTER) * self._deps.settings.fleet.cycle_secs  # noqa: S311 - no secret
        if all_read:
            self._failed_scans = 0
            return cycle
        pause = _SCAN_AGAIN.delay(self._failed_scans, random.random())  # noqa: S311 - no secret
        self._failed_scans += 1
        return min(pause, cycle)

    def _until_scan(self) -> float:
        return max(0.0, self._scan_at - self._process.clock.monotonic())

    def _scan_is_idle(self, scanning: asyncio.Task[None]) -> bool:
        """Whether no scan is under way or due. One that failed ends the round, which raises its error."""
        if scanning.done():
            if scanning.exception() is not None:
                raise SourceClosedError
            return True
        return not self._scanning and self._until_scan() > 0

    async def _forget_ended(self) -> None:
        """Remove bytes that were kept for sets which somebody else has dealt with."""
        kept = self._deps.workspace.kept
        if kept:
            waiting = await sets.unfinished_among(self._deps.database, kept)
            await self._deps.workspace.forget([set_id for set_id in kept if set_id not in waiting])

    async def _explain(self, obstacle: UserError | None) -> None:
        """Say once why the account publishes nothing, and look once a cycle whether that has changed."""
        reason = None if obstacle is None else str(obstacle)
        if reason is not None and reason != self._told:
            log.warning("account.publishes_nothing", reason=reason)
        self._told = reason
        present = self._process.clock.monotonic()
        if reason is not None and present - self._looked_at >= self._deps.settings.fleet.cycle_secs:
            self._looked_at = present
            seen = await self._deps.gateway.channels()
            await channels.record_seen(self._deps.database, self._deps.account.id, seen)


async def _no_timeout(claim: Claim) -> None:
    raise AssertionError(f"set {claim.set_id} has no time limit of its own: every call inside has one")
