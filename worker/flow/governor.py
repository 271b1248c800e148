"""Permission to call Telegram, and what is learned from the answers.

Contract. Nothing is called without permission of the store, which knows every block and every pace of all
processes; permission is asked right before the call, so a block that came up while a call waited for its
turn stops it too. ``attempt`` makes one attempt and is for writes, which the outbox retries; ``call`` is
for reads and retries: a flood is waited for and uses up no retry, other transient failures are tried again
after a growing delay. A wait beyond the caller's ``patience`` is handed back as ``NotBeforeError``, so that
nothing is held while it lasts. While the store is away nothing is called. Nothing is held during a sleep:
no connection, no transaction.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from worker.clock import Clock, SystemClock
from worker.domain.calls import Activity, Admission, Flood, FloodKind, FloodReport, Verdict
from worker.errors import BrokenLineError, NotBeforeError, OutcomeUnknownError
from worker.flow.activity import ActivityLog
from worker.flow.backoff import LOST
from worker.flow.flood import recognise
from worker.flow.limits import DEFAULT
from worker.flow.turnstile import Turnstile
from worker.log import get_logger, redact_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.domain.calls import Buckets, Call
    from worker.flow.governor_state import GovernorStore
    from worker.flow.limits import Limits

R = TypeVar("R")
log = get_logger(__name__)
_STORE_AWAY_SECONDS = 1.0


class FloodedError(NotBeforeError):
    """Telegram refused the call for a while; every process knows of it by now."""

    def __init__(self, call: Call, flood: Flood, seconds: float) -> None:
        super().__init__(f"{call.method} was refused with {flood.name}", seconds=seconds)
        self.flood = flood


@dataclass(slots=True)
class _Refusal:
    """A flood, when it is over by this process's clock, and what the store said to it once it knew."""

    report: FloodReport
    over_at: float
    verdict: Verdict


class Governor:
    """Asks before every call, and tells the store what came of it."""

    def __init__(
        self,
        store: GovernorStore,
        *,
        limits: Limits = DEFAULT,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self.limits = limits
        self._clock = clock or SystemClock()
        self._draw = draw
        self._turnstiles: dict[tuple[int, str], Turnstile] = {}
        self._unrecorded: deque[_Refusal] = deque()
        self._recording = asyncio.Lock()
        self.activity = ActivityLog(store.record_activity)

    async def call(
        self, call: Call, work: Callable[[], Awaitable[R]], *, patience: float = 30.0, urgent: bool = False
    ) -> R:
        """Call until it succeeds, fails for good, or would have to wait longer than ``patience`` s in all."""
        deadline = self._clock.monotonic() + patience
        retries = 0
        while True:
            try:
                return await self._attempt(call, work, deadline, urgent=urgent)
            except FloodedError as error:
                if self._clock.monotonic() + error.seconds > deadline:
                    raise
                if error.flood.kind is FloodKind.PREMIUM:
                    # No block stands for it, the wait is this call's own.
                    await self._clock.sleep(error.seconds)
            except LOST as error:
                if retries >= self.limits.backoff.retries or isinstance(error, BrokenLineError):
                    raise
                await self._clock.sleep(self.limits.backoff.delay(retries, self._draw()))
                retries += 1

    async def attempt(
        self, call: Call, work: Callable[[], Awaitable[R]], *, patience: float = 30.0, urgent: bool = False
    ) -> R:
        """Call once, as soon as it is allowed; a flood is recorded and raised as ``FloodedError``."""
        return await self._attempt(call, work, self._clock.monotonic() + patience, urgent=urgent)

    async def flooded(self, call: Call, flood: Flood, duration: float = 0.0) -> Verdict:
        """Tell all processes of a refusal; returns for how long the work has to rest."""
        hold = self.limits.hold(flood, self._draw())
        report = FloodReport(
            call=call,
            flood=flood,
            hold=hold,
            bucket=self.limits.buckets(call).name,
            duration=duration,
            escalation=self.limits.escalation,
            adaptation=self.limits.adaptation,
        )
        refusal = _Refusal(report, self._clock.monotonic() + hold, Verdict(hold))
        self._unrecorded.append(refusal)
        try:
            await self.record_floods()
        except (*LOST, OutcomeUnknownError) as error:
            log.warning("governor.flood.unrecorded", method=call.method, error=repr(error))
        return refusal.verdict

    async def record_floods(self) -> None:
        """Record the floods that the store does not know of yet.

        Every call waits for this first: none slips through while a flood is on its way to the store, or
        while the store is away. A flood leaves the queue only when it is recorded, so it outlives the
        cancellation of its caller; recording it twice only errs on the safe side.
        """
        if not self._unrecorded:
            return
        async with self._recording:
            while self._unrecorded:
                refusal = self._unrecorded[0]
                left = max(refusal.over_at - self._clock.monotonic(), 0.0)
                refusal.verdict = await self._store.record_flood(replace(refusal.report, hold=left))
                self._unrecorded.popleft()
                call = refusal.report.call
                log.info("governor.flood", method=call.method, flood=refusal.report.flood.name)
                if refusal.verdict.escalated:
                    log.warning("governor.flood.escalated", account=call.account, method=call.method)

    async def _attempt(
        self, call: Call, work: Callable[[], Awaitable[R]], deadline: float, *, urgent: bool
    ) -> R:
        buckets = self.limits.buckets(call)
        turnstile = self._turnstiles.setdefault((call.account, buckets.name), Turnstile(self._clock))
        await turnstile.enter(
            lambda: self._ask(call, buckets), urgent=urgent, deadline=deadline, what=call.method
        )
        started = self._clock.monotonic()
        try:
            result = await work()
        except Exception as error:
            await self._learn(call, error, self._clock.monotonic() - started)
            raise
        duration = self._clock.monotonic() - started
        self.activity.add(Activity(call.account, call.method, True, duration, context=call.context))
        return result

    async def _ask(self, call: Call, buckets: Buckets) -> Admission:
        try:
            await self.record_floods()
            return await self._store.admit(call, buckets, self.limits.adaptation)
        except (*LOST, OutcomeUnknownError) as error:
            log.warning("governor.store.away", error=repr(error))
            return Admission(_STORE_AWAY_SECONDS, "store away")

    async def _learn(self, call: Call, error: Exception, duration: float) -> None:
        flood = recognise(error)
        if flood is not None:
            verdict = await self.flooded(call, flood, duration)
            raise FloodedError(call, flood, verdict.seconds) from error
        self.activity.add(
            Activity(call.account, call.method, False, duration, error=describe(error), context=call.context)
        )
        await self.activity.flush()


def describe(error: BaseException) -> str:
    """An error in one short line, for the record."""
    return redact_text(f"{type(error).__name__}: {error}".splitlines()[0])[:200]
