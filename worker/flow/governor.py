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

import random
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from worker.clock import Clock, SystemClock
from worker.domain.calls import Activity, Admission, Flood, FloodKind, FloodReport, Verdict
from worker.errors import NotBeforeError, OutcomeUnknownError
from worker.flow.activity import ActivityLog
from worker.flow.backoff import LOST
from worker.flow.flood import recognise
from worker.flow.limits import DEFAULT
from worker.flow.turnstile import Turnstile
from worker.log import get_logger

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
class _Unrecorded:
    """A flood that the store does not know of yet, and when it is over."""

    report: FloodReport
    over_at: float


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
        self._unrecorded: deque[_Unrecorded] = deque()
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
                    await self._clock.sleep(
                        error.seconds
                    )  # no block stands for it: the wait is this call's own
            except LOST:
                if retries >= self.limits.backoff.retries:
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
        try:
            verdict = await self._store.record_flood(report)
        except (*LOST, OutcomeUnknownError) as error:
            # Nothing is called before this is made good (_ask). Recording it twice errs on the safe side.
            self._unrecorded.append(_Unrecorded(report, self._clock.monotonic() + hold))
            log.warning("governor.flood.unrecorded", method=call.method, error=repr(error))
            return Verdict(hold)
        if verdict.escalated:
            log.warning("governor.flood.escalated", account=call.account, method=call.method)
        log.info("governor.flood", account=call.account, method=call.method, flood=flood.name)
        return verdict

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
            await self._make_good()
            return await self._store.admit(call, buckets, self.limits.adaptation)
        except (*LOST, OutcomeUnknownError) as error:
            log.warning("governor.store.away", error=repr(error))
            return Admission(_STORE_AWAY_SECONDS, "store away")

    async def _make_good(self) -> None:
        """Record the floods that could not be recorded when they came."""
        while self._unrecorded:
            flood = self._unrecorded[0]
            left = max(flood.over_at - self._clock.monotonic(), 0.0)
            await self._store.record_flood(replace(flood.report, hold=left))
            self._unrecorded.popleft()

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
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
