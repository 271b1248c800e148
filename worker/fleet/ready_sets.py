"""The sets that an account may work on, as a source for the runner.

A set is claimed when the account's line has room to fetch it, not before: until then any other account may
have it. With its last bytes on their way the line has room again, and the next one is taken.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from worker.domain.pauses import in_the_way, resting_channels
from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    OWN_TROUBLE,
    BusyError,
    FenceLostError,
    FleetError,
    NotBeforeError,
    UserError,
)
from worker.flow.backoff import Backoff
from worker.flow.handling import SourceClosedError
from worker.log import get_logger
from worker.pipeline.claim import claim_next
from worker.pipeline.patience import after_a_bug
from worker.pipeline.prove import prove_some
from worker.pipeline.run import attempt
from worker.pipeline.settling import settled
from worker.recovery.intents import finish_open_intents
from worker.store import sets
from worker.store.claiming import Turn, others_prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.fleet.process import Process
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim

log = get_logger(__name__)
# How soon a set is claimed that another account has just found.
_LOOK_AGAIN_SECONDS = 0.5
# A worker in trouble takes its time before the next set; one that gets nothing done lets the account go.
_TROUBLE = Backoff(first=0.5, cap=30.0)
_MOST_TROUBLES = 6


class ReadySets:
    """Gives out one set at a time, and settles what its handler did not."""

    def __init__(
        self, process: Process, deps: Deps, scan_is_idle: Callable[[], bool], look_again: asyncio.Event
    ) -> None:
        self._process = process
        self._deps = deps
        self._scan_is_idle = scan_is_idle
        self._fatal: FleetError | None = None
        self._line_is_free = asyncio.Event()
        self._line_is_free.set()
        self._fetching: Claim | None = None
        self._in_flight = 0
        self._troubles = 0
        self._rested = True
        self._last_channel = 0
        self._idle_since = process.clock.monotonic()
        self.obstacle: UserError | None = None
        self._look_again = look_again

    async def fetch(self, limit: int) -> Sequence[Claim]:  # noqa: ARG002 - one at a time is fair to others
        await self._line_is_free.wait()
        await self._rest_from_trouble()
        # A claim that got no answer may stand: nobody else would have its set while this account works.
        await self._deps.tries.settle()
        # Asked before looking for sets: what the scan found until then is there to be claimed.
        nothing_comes = self._scan_is_idle()
        if self._fatal is not None:
            raise self._fatal
        if self._process.stopping.is_set():
            raise SourceClosedError
        pauses = await self._process.pauses.pauses()
        if in_the_way(pauses, self._deps.account.id, None) is not None:
            raise SourceClosedError
        # What was begun comes before anything new, also while a long backlog lasts.
        await finish_open_intents(self._deps)
        resting = resting_channels(pauses, self._deps.account.id)
        paused = [pause.account for pause in pauses if pause.account is not None and pause.channel is None]
        claim = await self._claim(Turn(self._last_channel, resting, paused))
        if claim is not None:
            return [claim]
        if nothing_comes and not self._in_flight and not await self._something_comes(resting):
            raise SourceClosedError
        await self._news()
        return []

    async def work_on(self, claim: Claim) -> None:
        """Take the set through the pipeline."""
        await attempt(self._deps, claim, on_fetched=lambda: self._leave_line(claim))

    async def acknowledge(self, item: Claim) -> None:
        """The pipeline has settled the set itself."""
        self._troubles = 0
        self._ended(item)

    async def hand_back(self, item: Claim, seconds: float) -> None:
        self._ended(item)
        if not self._deps.trust.is_trusted:
            # The next owner takes the set back; asking a database that is away would only cost time.
            return
        try:
            await sets.hand_back(self._deps.database, item, reason=None, wait_seconds=seconds)
        except FenceLostError:
            return
        except OWN_TROUBLE as error:
            # The account is let go of in order, or taken over: either releases its claims.
            log.warning("set.not_handed_back", set=item.set_id, reason=str(error))

    async def failed(self, claim: Claim, error: Exception) -> None:
        """What the pipeline raises ends the account's work, unless it is a bug that only this set meets.

        Trouble of the worker's own was waited for already, and the set given back: nothing is booked for it.
        """
        self._ended(claim)
        if isinstance(error, FenceLostError):
            log.warning("set.lost", set=claim.set_id, reason=str(error))
            return
        if isinstance(error, ENDS_ACCOUNTS_WORK):
            self._fatal = error
            return
        if isinstance(error, OWN_TROUBLE):
            self._troubles += 1
            self._rested = False
            if self._troubles >= _MOST_TROUBLES:
                self._fatal = error
            return
        log.error("set.broke", set=claim.set_id, error=repr(error), exc_info=error)
        verdict = after_a_bug(claim, self._deps.settings.fleet)
        write = partial(
            sets.hand_back,
            self._deps.database,
            claim,
            reason=f"internal error: {error!r}",
            wait_seconds=verdict.seconds,
            counts=verdict.counts,
            give_up=verdict.gives_up,
        )
        with contextlib.suppress(FenceLostError):
            await settled(self._deps, write)

    async def _rest_from_trouble(self) -> None:
        """The worker waits, not the set: another worker may have it meanwhile."""
        if not self._rested:
            await self._deps.clock.sleep(_TROUBLE.delay(self._troubles - 1))
            self._rested = True

    async def _claim(self, turn: Turn) -> Claim | None:
        stopping = self._process.stopping
        try:
            if not await self._look_around(stopping.is_set):
                raise SourceClosedError
            claim = await claim_next(self._deps, turn)
        except UserError as error:
            # Its sources are read all the same: another account may publish what is found there.
            self.obstacle = error
            return None
        self.obstacle = None
        if claim is not None:
            self._last_channel = claim.channel_id
            self._in_flight += 1
            self._fetching = claim
            self._line_is_free.clear()
        return claim

    async def _look_around(self, is_stopping: Callable[[], bool]) -> bool:
        try:
            return await self._process.lookout.look(self._deps, is_stopping, self._process.tell)
        except BusyError:
            raise
        except NotBeforeError as error:
            # A wait that Telegram asks for here may last a day: the sources are read all the same.
            what = f"it is not known yet what the destination holds: {error.what}"
            raise UserError(what, remedy="it goes on by itself when Telegram answers") from error

    async def _something_comes(self, resting: Sequence[int]) -> bool:
        """Whether somebody else is about to find work to be shared; what nobody proves any more is proven."""
        waited = self._process.clock.monotonic() - self._idle_since
        if self.obstacle is not None or waited > self._deps.settings.fleet.cycle_secs:
            # What they find later is found by the next round.
            return False
        if await prove_some(self._deps, resting):
            return True
        return await others_prepare(self._deps.database, self._deps.account.id, resting)

    async def _news(self) -> None:
        """Wait until there may be something to claim: the scan has ended, a set has, or some time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                await self._look_again.wait()
        self._look_again.clear()

    def _leave_line(self, claim: Claim) -> None:
        if self._fetching is claim:
            self._fetching = None
            self._line_is_free.set()

    def _ended(self, claim: Claim) -> None:
        self._leave_line(claim)
        self._in_flight -= 1
        self._idle_since = self._process.clock.monotonic()
        self._look_again.set()
