"""Bounded concurrency with backpressure: takes items from a source and runs a handler on each.

Contract. Never more than ``limit`` items are inside the runner, and the source is asked for no more than
there is room for, and not at all while there is none. ``handling`` says what happens to one item. Handlers
whose keys overlap run in order of arrival, through lanes. A source that fails is asked again after a
growing delay.

``run()`` returns once the source is closed and all work is done, or after ``stop()``; it raises when the
source fails in a way that no retry cures. Whichever way it ends, no handler is left running. A runner runs
once; ``stop`` is final and may come before the start, twice, and from several tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from worker.clock import Clock, SystemClock
from worker.errors import ENDS_ACCOUNTS_WORK, NotBeforeError, UserError
from worker.flow.backoff import Backoff
from worker.flow.handling import Source, SourceClosedError, Visit, Work, serve
from worker.flow.lanes import Lanes
from worker.flow.waiting import ends_within
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable, Sequence

T = TypeVar("T")
log = get_logger(__name__)

FATAL: tuple[type[Exception], ...] = (*ENDS_ACCOUNTS_WORK, UserError)
"""Failures of a source that asking again does not cure."""


class Sink(enum.Enum):
    """How items are taken in: one by one, a batch after the other, or whenever a slot is free."""

    SEQUENTIAL = "sequential"
    BATCH = "batch"
    CONCURRENT = "concurrent"

    def room(self, limit: int, live: int) -> int:
        """How many items may be fetched while ``live`` are inside."""
        if self is Sink.CONCURRENT:
            return max(0, limit - live)
        if live:
            return 0
        return 1 if self is Sink.SEQUENTIAL else limit


class Runner(Generic[T]):
    """The loop between a source and a handler, and the handle that starts, stops and awaits it."""

    def __init__(
        self,
        source: Source[T],
        handler: Callable[[T], Awaitable[object]],
        *,
        limit: int,
        on_error: Callable[[T, Exception], Awaitable[None] | None],
        on_timeout: Callable[[T], Awaitable[None] | None],
        keys: Callable[[T], Iterable[Hashable]] = lambda _: (),
        timeout: float | None = None,
        sink: Sink = Sink.CONCURRENT,
        idle: float = 1.0,
        backoff: Backoff = Backoff(cap=30.0),  # noqa: B008  # frozen
        clock: Clock | None = None,
        lanes: Lanes | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        if limit < 1:
            raise UserError(f"a runner needs room for at least one item, not {limit}")
        self._work = Work(source, handler, keys, timeout, on_error, on_timeout)
        self._limit = limit
        self._sink = sink
        self._idle = idle
        self._backoff = backoff
        self._clock = clock or SystemClock()
        self._lanes = lanes if lanes is not None else Lanes()
        self._draw = draw
        self._live: dict[asyncio.Task[None], Visit[T]] = {}
        self._left = asyncio.Event()
        self._ended = asyncio.Event()
        self._stopping = False
        self._main: asyncio.Task[None] | None = None
        self._feeder: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the run has begun and not yet ended."""
        return self._feeder is not None and not self._ended.is_set()

    def size(self) -> int:
        """How many items are inside."""
        return len(self._live)

    def snapshot(self) -> tuple[T, ...]:
        """The items that are inside, in order of arrival."""
        return tuple(visit.item for visit in self._live.values())

    def start(self) -> None:
        """Begin in a task of its own; ``await runner`` waits for its end."""
        self._main = asyncio.ensure_future(self.run())

    def __await__(self) -> Generator[Any, None, None]:
        """Wait for the end, and raise what ended it."""
        if self._main is None:
            raise RuntimeError("the runner was not started")
        # Who waits here may be cancelled without taking the runner along.
        yield from asyncio.shield(self._main).__await__()

    async def run(self) -> None:
        """Take items and handle them until the source is closed or the runner is stopped."""
        if self._feeder is not None:
            raise RuntimeError("a runner runs once")
        if self._stopping:
            return
        self._feeder = asyncio.ensure_future(self._feed())
        try:
            await asyncio.wait({self._feeder})
            if not self._feeder.cancelled():
                self._feeder.result()
            while self._live:
                await asyncio.wait(self._live)
        finally:
            await self._abandon()
            self._ended.set()

    async def stop(self, drain: float = 0.0) -> None:
        """Take nothing more, let handlers finish for ``drain`` seconds, cancel the rest, hand back, return.

        Items that wait for their lane are handed back at once. Of several calls the first deadline wins.
        """
        self._stopping = True
        if self._feeder is None:
            return
        self._feeder.cancel()
        self._cut([visit for visit in self._live.values() if not visit.started])
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            if not await ends_within(self._clock, drain, ended):
                self._cut(self._live.values())
                await ended
        finally:
            ended.cancel()

    async def _feed(self) -> None:
        failures = 0
        while True:
            room = self._sink.room(self._limit, len(self._live))
            if not room:
                self._left.clear()
                await self._left.wait()
                continue
            try:
                items = await self._work.source.fetch(room)
            except SourceClosedError:
                return
            except FATAL:
                raise
            except NotBeforeError as error:
                await self._clock.sleep(error.seconds)
            except Exception as error:  # noqa: BLE001  # a source may fail in any way; it is asked again
                delay = self._backoff.delay(failures, self._draw())
                log.warning("runner.source.failed", error=repr(error), retry_in=round(delay, 3))
                failures += 1
                await self._clock.sleep(delay)
            else:
                failures = 0
                await self._admit(items, room)

    async def _admit(self, items: Sequence[T], room: int) -> None:
        for item in items[:room]:
            visit = Visit(item)
            task = asyncio.ensure_future(serve(self._work, visit, self._lanes, self._clock))
            self._live[task] = visit
            task.add_done_callback(self._leave)
        if not items:
            await self._clock.sleep(self._idle)
        for item in items[room:]:
            log.error("runner.source.gave_too_much", asked=room, given=len(items))
            await self._work.source.hand_back(item, 0.0)

    def _leave(self, task: asyncio.Task[None]) -> None:
        del self._live[task]
        self._left.set()

    def _cut(self, visits: Iterable[Visit[T]]) -> None:
        for visit in visits:
            visit.cut_short("stop")

    async def _abandon(self) -> None:
        """Leave nothing running, in whatever way the run ends."""
        assert self._feeder is not None
        self._feeder.cancel()
        self._cut(self._live.values())
        while rest := {task for task in (self._feeder, *self._live) if not task.done()}:
            # The run is ending by raising already; being cancelled once more must not leave handlers behind.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(rest)
