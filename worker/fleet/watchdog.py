"""An event loop that stands still is told of while it does: by a thread, which goes on.

What blocks the loop keeps heartbeats from being sent, and then the leases of all its accounts are lost. The
log says where the loop stands and what it works on; nothing else is done about it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = get_logger(__name__)
# A process that was stopped as a whole looks once, late, and finds the loop where it was: no standstill.
_LOOKS = 4
_MOST_FRAMES = 15


@dataclass(frozen=True, slots=True)
class Standstill:
    """Where a loop stands: the task that runs, named after what it works on, and its stack."""

    task: str
    stack: str


def tell_the_log(found: Standstill) -> None:
    """For whoever has to find out what the worker was at."""
    log.error("worker.stands_still", at=found.task, stack=found.stack)


@contextlib.contextmanager
def watched_loop(seconds: float, tell: Callable[[Standstill], None] = tell_the_log) -> Iterator[None]:
    """Tell once if the running loop does nothing else for so long, and again after it has moved."""
    watchdog = _Watchdog(asyncio.get_running_loop(), seconds / _LOOKS, tell)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class _Watchdog:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, interval: float, tell: Callable[[Standstill], None]
    ) -> None:
        self._loop = loop
        self._interval = interval
        self._tell = tell
        self._beats = 0
        self._ended = threading.Event()
        self._of_loop = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._next is not None:
            self._next.cancel()
        self._thread.join()

    def _beat(self) -> None:
        self._beats += 1
        self._next = self._loop.call_later(self._interval / 2, self._beat)

    def _watch(self) -> None:
        seen = missed = 0
        while not self._ended.wait(self._interval):
            if self._beats != seen:
                seen, missed = self._beats, 0
                continue
            missed += 1
            if missed == _LOOKS:
                self._tell(self._standstill())

    def _standstill(self) -> Standstill:
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._of_loop)  # noqa: SLF001 - the only way to another thread's stack
        stack = "".join(traceback.format_stack(frame, limit=None)[-_MOST_FRAMES:]) if frame else ""
        return Standstill("no task" if task is None else task.get_name(), stack)
