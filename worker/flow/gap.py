"""A pause between one piece of work and the next: pages of a channel, channels of an account.

Contract. ``async with gap`` waits until ``seconds`` have passed since the last body ended, however it
ended, and lets one body run at a time, in order of arrival.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from worker.flow.lanes import Lanes

if TYPE_CHECKING:
    from types import TracebackType

    from worker.clock import Clock


class Gap:
    """At least ``seconds`` from the end of one body to the start of the next."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._ended_at = float("-inf")
        self._turns = Lanes()
        self._turn = contextlib.AsyncExitStack()

    async def __aenter__(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._turns.hold("turn"))
            rest = self._ended_at + self._seconds - self._clock.monotonic()
            if rest > 0:
                await self._clock.sleep(rest)
            self._turn = stack.pop_all()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended_at = self._clock.monotonic()
        await self._turn.aclose()
