"""How many parts are under way, and over how many lines: found out by trying, taken back when refused.

Contract. The right depth is bandwidth times latency, and neither is known. Depth starts moderate; as long
as doubling it made the transfer clearly faster it is doubled again, otherwise the step is taken back and
tried once more after a while. A refusal halves it. It is shared by all transfers of one account, data
centre and direction.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_START = 16
PARTS_PER_LINE = 4
# Doubling that gains less than this is not worth its memory and its load on the server.
_GAIN = 1.15
_TRY_AGAIN_SECONDS = 20.0
_NARROWED_SECONDS = 10.0


class Depth:
    """A semaphore whose size follows what it learns."""

    def __init__(
        self, most: int, most_lines: int, *, clock: Callable[[], float] = time.monotonic, start: int = _START
    ) -> None:
        self.limit = min(start, most)
        self._most, self._most_lines = most, most_lines
        self._clock = clock
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._done, self._since = 0, 0.0
        self._rate_before = 0.0
        self._widened = False
        self._steady_until = 0.0

    @property
    def lines(self) -> int:
        """Over how many connections so many parts are spread."""
        return min(self._most_lines, -(-self.limit // PARTS_PER_LINE))

    @property
    def per_line(self) -> int:
        return -(-self.limit // self.lines)

    async def enter(self) -> None:
        """Wait until one more part may be under way."""
        if self._under_way == 0:
            self._measure_anew()
        while self._under_way >= self.limit:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._pass_on(turn)
                raise
        self._under_way += 1

    def leave(self, *, moved: bool) -> None:
        """A part has ended; ``moved`` says whether it was transferred."""
        self._under_way -= 1
        if moved:
            self._done += 1
            self._learn()
        self._let_in()

    def narrow(self) -> None:
        """The server asks for patience."""
        self.limit = max(1, self.limit // 2)
        self._steady_until = self._clock() + _NARROWED_SECONDS
        self._widened = False
        self._measure_anew()

    def _learn(self) -> None:
        # One generation of parts tells what this depth is worth.
        if self._done < self.limit:
            return
        now = self._clock()
        rate = self._done / max(now - self._since, 1e-6)
        before, self._rate_before = self._rate_before, rate
        self._measure_anew()
        if now < self._steady_until:
            return
        if self._widened and rate < before * _GAIN:
            self.limit = max(1, self.limit // 2)
            self._widened = False
            self._steady_until = now + _TRY_AGAIN_SECONDS
        else:
            self._widened = self.limit < self._most
            self.limit = min(self._most, self.limit * 2)

    def _measure_anew(self) -> None:
        self._done, self._since = 0, self._clock()

    def _pass_on(self, turn: asyncio.Future[None]) -> None:
        """Somebody stops waiting: a turn that was given already goes to the next."""
        if turn.done() and not turn.cancelled():
            self._let_in()
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def _let_in(self) -> None:
        free = self.limit - self._under_way
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
