"""Who asks for permission next, among the tasks of one process that call the same method for one account.

Contract. One waiter asks at a time. Those that a person waits for ask before background work, and within a
rank the order is that of arrival; an urgent waiter that arrives while background work is waiting for its
time goes first. A refusal that concerns one chat makes only that waiter step aside. ``NotBeforeError`` is
raised as soon as it is known that the wait would exceed the waiter's patience.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import NotBeforeError
from worker.flow.waiting import ends_within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.clock import Clock
    from worker.domain.calls import Admission


@dataclass(slots=True, eq=False)
class _Waiter:
    rank: tuple[bool, int]
    not_before: float


class Turnstile:
    """The waiters of one account and method class."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._waiters: set[_Waiter] = set()
        self._ripe_at = float("-inf")
        self._asking = False
        self._changed: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    async def enter(
        self, ask: Callable[[], Awaitable[Admission]], *, urgent: bool, deadline: float, what: str
    ) -> None:
        """Ask in turn until permission is given; give up when it cannot come before ``deadline``."""
        me = _Waiter((not urgent, next(self._order)), float("-inf"))
        self._waiters.add(me)
        try:
            while True:
                now = self._clock.monotonic()
                if now > deadline:
                    raise NotBeforeError(f"{what} has to wait (others go first)", seconds=self._soon(now))
                if self._asking or self._first(now) is not me:
                    await self._until_change(me, now)
                    continue
                admission = await self._ask(ask)
                if admission.granted:
                    return
                ready_at = self._clock.monotonic() + admission.wait
                if ready_at > deadline:
                    raise NotBeforeError(f"{what} has to wait ({admission.reason})", seconds=admission.wait)
                if admission.of_chat:
                    me.not_before = ready_at
                else:
                    self._ripe_at = ready_at
        finally:
            self._waiters.discard(me)
            self._announce()

    async def _ask(self, ask: Callable[[], Awaitable[Admission]]) -> Admission:
        self._asking = True
        try:
            return await ask()
        finally:
            self._asking = False
            self._announce()

    def _first(self, now: float) -> _Waiter | None:
        if now < self._ripe_at:
            return None
        ready = [waiter for waiter in self._waiters if waiter.not_before <= now]
        return min(ready, key=lambda waiter: waiter.rank, default=None)

    def _soon(self, now: float) -> float:
        return max(self._ripe_at - now, 1.0)

    async def _until_change(self, me: _Waiter, now: float) -> None:
        """Wait until the moment that this waiter knows of, or until something happens to another one."""
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        moment = max(self._ripe_at, me.not_before)
        await ends_within(self._clock, moment - now if moment > now else None, self._changed)

    def _announce(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
