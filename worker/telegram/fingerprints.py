"""The server's own hashes of a file's ranges, asked for ahead of the ranges.

An envelope proves that a chunk came from the server, not that the server read the right bytes. Whatever the
server has hashes for is compared with them before it counts. They are a service, not a promise: where the
server does not give any, or keeps failing when it is asked for them, the download goes on without.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from worker.errors import BrokenLineError, FleetError, NotBeforeError, RefusedError, RetryableError
from worker.log import get_logger
from worker.telegram.line import LineLostError, NoAnswerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from worker.telegram.part_calls import RangeHash

log = get_logger(__name__)
# More calls ahead than parts are under way, so that no part waits for its hashes.
_AHEAD = 24
_MOST_PER_UNIT = 64
_MOST_FAILURES = 3
# Then the next download asks again.
_REST_SECONDS = 600.0


class HashService:
    """Whether a server gives hashes at present, as far as the account's downloads have found out."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures = 0
        self._rests_until = float("-inf")

    @property
    def is_up(self) -> bool:
        return self._now() >= self._rests_until

    def answered(self) -> None:
        self._failures = 0

    def failed(self, reason: str) -> None:
        """A question went unanswered however often it was asked."""
        self._failures += 1
        if self._failures >= _MOST_FAILURES and self.is_up:
            self._failures = 0
            self._rests_until = self._now() + _REST_SECONDS
            log.warning(
                "fingerprints.given_up",
                reason=reason,
                meaning="downloads go on without comparing with the server's hashes",
                seconds=_REST_SECONDS,
            )


class Fingerprints:
    """Hashes by unit of the file; ``ask`` fetches those from an offset on, as many as the server gives."""

    def __init__(
        self,
        ask: Callable[[int], Awaitable[list[RangeHash]]],
        units: Iterable[int],
        *,
        unit: int,
        service: HashService,
    ) -> None:
        self._ask, self._unit, self._service = ask, unit, service
        self._to_ask = iter(units)
        self._asked: dict[int, asyncio.Task[list[RangeHash]]] = {}
        self._known: dict[int, list[RangeHash]] = {}
        self._is_refused = False

    @property
    def are_given(self) -> bool:
        """Whether there is any point in asking."""
        return not self._is_refused and self._service.is_up

    async def of(self, offset: int) -> list[RangeHash]:
        """The hashes within the unit at ``offset``; none where the server gives none."""
        number = offset // self._unit
        self._ask_ahead()
        while self.are_given and number not in self._known:
            task = self._asked.get(number) or self._begin(number)
            try:
                await asyncio.shield(task)
            except (RefusedError, NotBeforeError) as error:
                self._asked.pop(number, None)
                self._is_refused = True
                log.info("fingerprints.not_given", reason=str(error))
            except BrokenLineError:
                # The range would not come either.
                self._asked.pop(number, None)
                raise
            except RetryableError as error:
                # It was asked for as often as any part is. This unit comes without.
                self._asked.pop(number, None)
                if isinstance(error, NoAnswerError) or not isinstance(error, LineLostError):
                    self._service.failed(str(error))
                break
            except FleetError:
                self._asked.pop(number, None)
                raise
        return self._known.pop(number, [])

    def _ask_ahead(self) -> None:
        while self.are_given and len(self._asked) + len(self._known) < _AHEAD:
            number = next(self._to_ask, None)
            if number is None:
                return
            if number not in self._known and number not in self._asked:
                self._begin(number)

    def _begin(self, number: int) -> asyncio.Task[list[RangeHash]]:
        task = self._asked[number] = asyncio.create_task(self._fetch(number))
        # Whoever needs these hashes hears of a failure; if nobody does any more, nobody needs to.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return task

    async def _fetch(self, number: int) -> list[RangeHash]:
        found = await self._ask(number * self._unit)
        self._service.answered()
        self._asked.pop(number, None)
        # An answer that does not reach this far is an answer all the same: there is nothing to compare.
        self._known.setdefault(number, [])
        for each in found:
            first, last = each.offset // self._unit, (each.offset + each.length - 1) // self._unit
            # A range that crosses a border could not be compared with one unit alone.
            if each.length > 0 and first == last:
                known = self._known.setdefault(first, [])
                if len(known) < _MOST_PER_UNIT:
                    known.append(each)
        return found

    async def close(self) -> None:
        """Stop asking."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
