"""One round of an account: scanning its sources while it works through what is ready."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way, resting_channels
from worker.errors import AccountUnusableError, FenceLostError, FleetError, LeaseLostError
from worker.fleet.scanning import scan_all
from worker.flow.handling import SourceClosedError
from worker.flow.runner import Runner
from worker.log import get_logger
from worker.pipeline.claim import claim_next
from worker.pipeline.run import attempt
from worker.recovery.intents import finish_open_intents
from worker.store import sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim

log = get_logger(__name__)
# How soon a set is claimed that a scan, still under way, has just found.
_LOOK_AGAIN_SECONDS = 0.5


async def run_round(process: Process, deps: Deps) -> None:
    """Scan every source once, and work until nothing is claimable; a flood of one holds up the other not."""
    scanning = asyncio.create_task(scan_all(process, deps), name=f"scan of account {deps.account.id}")
    try:
        while not process.stopping.is_set():
            was_scanned = scanning.done()
            if not await _work_through(process, deps):
                if was_scanned:
                    break
                await asyncio.wait({scanning}, timeout=_LOOK_AGAIN_SECONDS)
        if scanning.done():
            scanning.result()
    finally:
        scanning.cancel()
        await asyncio.gather(scanning, return_exceptions=True)


async def _work_through(process: Process, deps: Deps) -> int:
    """Work on everything that is claimable now, several sets at once; how many there were."""
    ready = _Ready(process, deps)
    runner = Runner(
        ready,
        lambda claim: attempt(deps, claim),
        limit=deps.settings.fleet.sets_in_flight,
        on_error=ready.failed,
        on_timeout=_no_timeout,
        clock=deps.clock,
    )
    await runner.run()
    return ready.taken


async def _no_timeout(claim: Claim) -> None:
    raise AssertionError(f"set {claim.set_id} has no time limit of its own: every call inside has one")


class _Ready:
    """The sets that this account may work on, as a source for the runner."""

    def __init__(self, process: Process, deps: Deps) -> None:
        self._process = process
        self._deps = deps
        self._fatal: FleetError | None = None
        self.taken = 0

    async def fetch(self, limit: int) -> Sequence[Claim]:  # noqa: ARG002 - one at a time is fair to others
        if self._fatal is not None:
            raise self._fatal
        if self._process.stopping.is_set():
            raise SourceClosedError
        pauses = await self._process.pauses.pauses()
        if in_the_way(pauses, self._deps.account.id, None) is not None:
            raise SourceClosedError
        # What was begun comes before anything new, also while a long backlog lasts.
        await finish_open_intents(self._deps)
        claim = await claim_next(self._deps, resting_channels(pauses, self._deps.account.id))
        if claim is None:
            raise SourceClosedError
        self.taken += 1
        return [claim]

    async def acknowledge(self, item: Claim) -> None:
        """The pipeline has settled the set itself."""

    async def hand_back(self, item: Claim, seconds: float) -> None:
        if not self._deps.trust.is_trusted:
            # The next owner takes the set back; asking a database that is away would only cost time.
            return
        with contextlib.suppress(FenceLostError):
            await sets.hand_back(self._deps.database, item, reason=None, wait_seconds=seconds)

    async def failed(self, claim: Claim, error: Exception) -> None:
        """What the pipeline raises ends the account's work, unless it is a bug that only this set meets."""
        if isinstance(error, FenceLostError):
            log.warning("set.lost", set=claim.set_id, reason=str(error))
            return
        if isinstance(error, LeaseLostError | AccountUnusableError):
            self._fatal = error
            return
        log.error("set.broke", set=claim.set_id, error=repr(error), exc_info=error)
        wait = self._deps.settings.fleet.retry_cap_secs
        with contextlib.suppress(FenceLostError):
            await sets.hand_back(
                self._deps.database,
                claim,
                reason=f"internal error: {error!r}",
                wait_seconds=wait,
                counts=True,
            )
