"""How many parts are under way, and over how many lines: found out by trying, taken back when refused.

Contract. The right depth is bandwidth times latency, and neither is known. The width starts moderate; as
long as doubling it made the transfer clearly faster it is doubled again, otherwise the step is taken back and
tried once more after a while. A refusal halves it. Within the width no more parts are under way than the
line at its best moves in the time of one and a moment more: a longer queue moves nothing faster, and whatever
else the account asks would wait behind it. What was learned of the line is forgotten once a minute. All of
this is shared by the transfers of one account, data centre and direction.
"""

from __future__ import annotations

import asyncio
import math
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
# The queue that is kept, so that neither a hiccup nor the queue of the other direction leaves the line empty.
_QUEUE_SECONDS = 0.15
# The pace is taken over this long, since parts end in bursts.
_PACE_SECONDS = 0.5
# When few parts are under way, the time of one shows. Both directions look at the same moments.
_FEWEST, _LOOKED_AT = 2, 4
_LOOK_EVERY, _LOOK_SOONEST = 60.0, 10.0


class Depth:
    """A semaphore whose size follows what it learns."""

    def __init__(
        self, most: int, most_lines: int, *, clock: Callable[[], float] = time.monotonic, start: int = _START
    ) -> None:
        self._width = min(start, most)
        self._most, self._most_lines = most, most_lines
        self._clock = clock
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._done, self._since = 0, 0.0
        self._rate_before = 0.0
        self._widened = False
        self._steady_until = 0.0
        self._use = _Use(most, clock())

    @property
    def limit(self) -> int:
        """How many parts may be under way."""
        return min(self._width, self._use.parts)

    @property
    def is_busy(self) -> bool:
        """Whether any part is under way."""
        return self._under_way > 0

    @property
    def lines(self) -> int:
        """Over how many connections they are spread."""
        return min(self._most_lines, -(-self._width // PARTS_PER_LINE))

    @property
    def per_line(self) -> int:
        return -(-self.limit // self.lines)

    async def enter(self) -> float:
        """Wait until one more part may be under way; when that was."""
        if self._under_way == 0:
            self._measure_anew()
            self._use.begins(self._since)
        while self._under_way >= self.limit:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._pass_on(turn)
                raise
        self._under_way += 1
        return self._clock()

    def leave(self, entered: float, *, moved: bool, is_last: bool = False) -> None:
        """A part has ended; ``moved`` says whether it was transferred. The last of a file may be small."""
        self._under_way -= 1
        if moved:
            now = self._clock()
            self._done += 1
            self._learn(now)
            self._use.ended(now, math.inf if is_last else now - entered, self._under_way)
        self._let_in()

    def narrow(self) -> None:
        """The server asks for patience."""
        self._width = max(1, min(self._width, self._use.enough) // 2)
        self._steady_until = self._clock() + _NARROWED_SECONDS
        self._widened = False
        self._measure_anew()

    def _learn(self, now: float) -> None:
        # One generation of parts tells what this width is worth.
        if self._done < self._width or self._use.is_looking:
            return
        rate = self._done / max(now - self._since, 1e-6)
        before, self._rate_before = self._rate_before, rate
        self._measure_anew()
        if now < self._steady_until:
            return
        if self._widened and rate < before * _GAIN:
            self._width = max(1, self._width // 2)
            self._widened = False
            self._steady_until = now + _TRY_AGAIN_SECONDS
        else:
            self._widened = self._width < self._most
            self._width = min(self._most, self._width * 2)

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


class _Use:
    """How many parts keep the line busy: its best pace times the time of a part that waits for no other."""

    def __init__(self, most: int, now: float) -> None:
        self._most = self.enough = most
        self._best_pace = 0.0
        self._alone = math.inf
        self._looked_at = now
        self._to_look_at = 0
        self.begins(now)

    @property
    def is_looking(self) -> bool:
        """Whether fewer parts than enough are under way, for a moment."""
        return self._to_look_at > 0

    @property
    def parts(self) -> int:
        return _FEWEST if self.is_looking else self.enough

    def begins(self, now: float) -> None:
        """After a while without any, the first part is about to leave."""
        self._count, self._since, self._shortest = 0, now, math.inf

    def ended(self, now: float, duration: float, under_way: int) -> None:
        """A part was moved, so many others are still under way."""
        self._count += 1
        self._shortest = min(self._shortest, duration)
        self._alone = min(self._alone, duration)
        self._to_look_at = max(0, self._to_look_at - 1)
        seconds = now - self._since
        if seconds < _PACE_SECONDS or self.is_looking or self._alone == math.inf:
            return
        # Not what it moves just now: fewer under way move less, and that would be a way down without end.
        self._best_pace = max(self._count / seconds, self._best_pace)
        enough = math.ceil(self._best_pace * (self._alone + max(self._alone, _QUEUE_SECONDS)))
        self.enough = max(_FEWEST, min(enough, self._most))
        self._look_again(now, under_way)
        self.begins(now)

    def _look_again(self, now: float, under_way: int) -> None:
        """The way may have become longer, or slower. Behind a queue that does not show: let it run dry."""
        longer = self._shortest > 2 * (self._alone + _QUEUE_SECONDS)
        due = now // _LOOK_EVERY > self._looked_at // _LOOK_EVERY
        if due or (longer and now - self._looked_at > _LOOK_SOONEST):
            self._looked_at = now
            self._alone, self._best_pace = math.inf, 0.0
            self._to_look_at = under_way + _LOOKED_AT
