"""A source of items that a test fills, fails and closes by hand."""

import asyncio
from collections import deque

from worker.flow.handling import SourceClosedError


class ListSource:
    """Gives what ``put`` put in; remembers what was asked, acknowledged and handed back."""

    def __init__(self, items=(), *, closed: bool = False) -> None:
        self.items = deque(items)
        self.closed = closed
        self.asked: list[int] = []
        self.fetching = False
        self.acknowledged: list[object] = []
        self.handed_back: list[tuple[object, float]] = []
        self.failures: deque[Exception] = deque()
        self.refuse_settling: Exception | None = None
        self._changed = asyncio.Event()

    def put(self, *items) -> None:
        self.items.extend(items)
        self._changed.set()

    def fail(self, *errors: Exception) -> None:
        self.failures.extend(errors)
        self._changed.set()

    def close(self) -> None:
        self.closed = True
        self._changed.set()

    async def fetch(self, limit):
        self.asked.append(limit)
        self.fetching = True
        try:
            while True:
                if self.failures:
                    raise self.failures.popleft()
                if self.items:
                    return [self.items.popleft() for _ in range(min(limit, len(self.items)))]
                if self.closed:
                    raise SourceClosedError
                self._changed.clear()
                await self._changed.wait()
        finally:
            self.fetching = False

    async def acknowledge(self, item):
        if self.refuse_settling is not None:
            raise self.refuse_settling
        self.acknowledged.append(item)

    async def hand_back(self, item, seconds):
        self.handed_back.append((item, seconds))
