"""The server's own hashes of a file's ranges, asked for ahead of the ranges.

An envelope proves that a chunk came from the server, not that the server read the right bytes. Whatever the
server has hashes for is compared with them before it counts. They are a service, not a promise: where the
server does not give any, the download goes on without.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker.errors import FleetError, NotBeforeError, RefusedError
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from worker.telegram.part_calls import RangeHash

log = get_logger(__name__)
# More calls ahead than parts are under way, so that no part waits for its hashes.
_AHEAD = 24


class Fingerprints:
    """Hashes by unit of the file; ``ask`` fetches those from an offset on, as many as the server gives."""

    def __init__(
        self,
        ask: Callable[[int], Awaitable[list[RangeHash]]],
        units: Iterable[int],
        *,
        unit: int,
    ) -> None:
        self._ask, self._unit = ask, unit
        self._to_ask = iter(units)
        self._asked: dict[int, asyncio.Task[list[RangeHash]]] = {}
        self._known: dict[int, list[RangeHash]] = {}
        self.are_given = True

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
                self.are_given = False
                log.info("fingerprints.not_given", reason=str(error))
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
        self._asked.pop(number, None)
        # An answer that does not reach this far is an answer all the same: there is nothing to compare.
        self._known.setdefault(number, [])
        for each in found:
            # A range that crosses a border could not be compared with one unit alone.
            if each.offset // self._unit == (each.offset + each.length - 1) // self._unit:
                self._known.setdefault(each.offset // self._unit, []).append(each)
        return found

    async def close(self) -> None:
        """Stop asking."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
