"""A governor on a manual clock over a store in memory, and calls whose answers the test decides."""

import asyncio

from manual_clock import ManualClock
from memory_governor_store import MemoryGovernorStore

from worker.domain.calls import Call
from worker.errors import NotBeforeError
from worker.flow.governor import Governor
from worker.flow.keeper import Keeper
from worker.flow.parts import BlockCache, FileParts

HISTORY = Call(1, "messages.getHistory", chat=5)


SEARCH = Call(1, "messages.search", chat=5)


GET_FILE = Call(1, "upload.getFile", context="set 7")


class Desk:
    """A governor on a manual clock, and calls whose answers the test decides."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryGovernorStore(self.clock)
        self.governor = Governor(self.store, clock=self.clock, draw=lambda: 0.5)
        self.blocks = BlockCache(self.store, self.clock)
        self.keeper = Keeper(self.governor, self.blocks, self.clock)
        self.started: list[tuple[float, object]] = []

    def work(self, *answers, name=None):
        pending = list(answers)

        async def run():
            self.started.append((self.clock.monotonic(), name))
            answer = pending.pop(0) if pending else "page"
            if isinstance(answer, Exception):
                raise answer
            return answer

        return run

    def call(self, call=HISTORY, *answers, name=None, **options):
        return asyncio.create_task(self.governor.call(call, self.work(*answers, name=name), **options))

    def parts(self, call=GET_FILE, narrow=lambda: None, **options):
        return FileParts(
            self.governor, self.blocks, call, self.clock, narrow=narrow, draw=lambda: 0.5, **options
        )

    @property
    def moments(self) -> list[float]:
        return [moment for moment, _ in self.started]


def flood(seconds, kind="FLOOD_WAIT"):
    return NotBeforeError(f"messages.getHistory: 420 {kind}_{seconds}", seconds=seconds)
