"""A runner on a manual clock, with handlers that end when the test says so."""

import asyncio

from hang_guard import HANG_SECONDS
from list_source import ListSource
from manual_clock import ManualClock, settle

from worker.flow.runner import Runner


class Workshop:
    """Handlers that end when the test says so, and a record of everything that happened to them."""

    def __init__(self) -> None:
        self.started: list[object] = []
        self.cancelled: list[object] = []
        self.errors: list[tuple[object, str]] = []
        self.timeouts: list[object] = []
        self.live = 0
        self.most = 0
        self.stubborn: set[object] = set()
        self._gates: dict[object, asyncio.Event] = {}
        self._faults: dict[object, Exception] = {}

    def gate(self, item) -> asyncio.Event:
        return self._gates.setdefault(item, asyncio.Event())

    async def finish(self, *items, error: Exception | None = None) -> None:
        for item in items:
            if error is not None:
                self._faults[item] = error
            self.gate(item).set()
        await settle()

    async def handle(self, item) -> None:
        self.started.append(item)
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await self._until_told(item)
        finally:
            self.live -= 1
        if item in self._faults:
            raise self._faults[item]

    async def _until_told(self, item) -> None:
        while True:
            try:
                await self.gate(item).wait()
            except asyncio.CancelledError:
                self.cancelled.append(item)
                if item not in self.stubborn:
                    raise
            else:
                return

    def on_error(self, item, error) -> None:
        self.errors.append((item, str(error)))

    async def on_timeout(self, item) -> None:
        self.timeouts.append(item)


class Bench:
    """A runner on a manual clock, with its source and its workshop."""

    def __init__(self, items=(), *, closed=False, **options) -> None:
        self.source = ListSource(items, closed=closed)
        self.shop = Workshop()
        self.clock = ManualClock()
        options = {
            "limit": 2,
            "handler": self.shop.handle,
            "on_error": self.shop.on_error,
            "on_timeout": self.shop.on_timeout,
            "clock": self.clock,
            "draw": lambda: 0.5,
        } | options
        self.runner = Runner(self.source, **options)

    async def start(self) -> "Bench":
        self.runner.start()
        await settle()
        return self

    async def stop(self, drain: float = 0.0) -> None:
        await asyncio.wait_for(self.runner.stop(drain), HANG_SECONDS)
