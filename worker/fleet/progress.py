"""Saying what an account is doing, where every process can read it.

Contract. Whatever the steps report costs no round trip: the latest word of each set is kept in memory and
written at most once a second. It is for people to read, so a database that is away stops nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from worker.errors import FleetError
from worker.log import get_logger
from worker.store.progress import StepProgress, write_progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from worker.clock import Clock
    from worker.pipeline.deps import Watcher
    from worker.store.database import Database

log = get_logger(__name__)
_SECONDS_BETWEEN_WRITES = 1.0


class ProgressRecorder:
    """A watcher that passes everything on and keeps the latest of it for ``write``."""

    def __init__(
        self, inner: Watcher, write: Callable[[Sequence[StepProgress]], Awaitable[None]], clock: Clock
    ) -> None:
        self._inner = inner
        self._write = write
        self._clock = clock
        self._steps: dict[str, StepProgress] = {}
        self._changed = asyncio.Event()
        # What an earlier owner left is removed by the first write.
        self._changed.set()

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        self._steps[set_name] = StepProgress(set_name, step, done, total)
        self._changed.set()
        self._inner.bytes_moved(set_name, step, done, total)

    def set_ended(self, set_name: str, outcome: str) -> None:
        if self._steps.pop(set_name, None) is not None:
            self._changed.set()
        self._inner.set_ended(set_name, outcome)

    def set_given_up(self, set_name: str, reason: str) -> None:
        self._inner.set_given_up(set_name, reason)

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._write(list(self._steps.values()))
            except FleetError as error:
                log.warning("progress.not_written", reason=str(error))
            await self._clock.sleep(_SECONDS_BETWEEN_WRITES)


@contextlib.asynccontextmanager
async def recording(
    database: Database, account_id: int, inner: Watcher, clock: Clock
) -> AsyncIterator[ProgressRecorder]:
    """A recorder for this account that writes for the length of the block."""

    async def write(steps: Sequence[StepProgress]) -> None:
        await write_progress(database, account_id, steps)

    recorder = ProgressRecorder(inner, write, clock)
    writing = asyncio.create_task(recorder.run(), name=f"progress of account {account_id}")
    try:
        yield recorder
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
