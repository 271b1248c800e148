"""Takes one item of the runner through its handler, and settles it.

Contract. ``serve`` waits for the item's lanes, runs the handler within the timeout, and settles the item in
exactly one way: acknowledged, handed back, or reported to ``on_error`` or ``on_timeout``. Should settling
itself fail, the item is handed back instead. It raises nothing, so a slot is always given back. A handler
that was cut short counts as unfinished however it ends: one that swallows its cancellation cannot be
believed to have succeeded. The lanes are held until the item is settled, so that the next item with the
same key finds everything done.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypeVar

from worker.errors import NotBeforeError
from worker.flow.waiting import ends_within
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence

    from worker.clock import Clock
    from worker.flow.lanes import Lanes

T = TypeVar("T")
log = get_logger(__name__)


class SourceClosedError(Exception):
    """Raised by ``fetch`` when nothing will ever come again."""


class Source(Protocol[T]):
    """Where items come from and where unfinished ones return to."""

    async def fetch(self, limit: int) -> Sequence[T]:
        """At most ``limit`` items, waiting for one if need be; when cancelled, nothing stays taken.

        Raises ``SourceClosedError`` at the end and ``NotBeforeError`` to be asked again later.
        """
        ...

    async def acknowledge(self, item: T) -> None:
        """The item's handler succeeded."""
        ...

    async def hand_back(self, item: T, seconds: float) -> None:
        """The item was not finished; it may be fetched again ``seconds`` from now."""
        ...


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """What to do with an item, and whom to tell when that fails."""

    source: Source[T]
    handler: Callable[[T], Awaitable[object]]
    keys: Callable[[T], Iterable[Hashable]]
    timeout: float | None
    on_error: Callable[[T, Exception], Awaitable[None] | None]
    on_timeout: Callable[[T], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Done:
    """The handler succeeded."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The handler did not finish: not its fault, and it may go on ``seconds`` from now."""

    seconds: float


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The handler took too long and has been cancelled."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised."""

    error: Exception


Ending: TypeAlias = Done | Postponed | TimedOut | Failed


class Visit(Generic[T]):
    """One item inside the runner, from arrival to settlement."""

    __slots__ = ("cancel", "cut", "item", "started")

    def __init__(self, item: T) -> None:
        self.item = item
        self.started = False
        self.cut: Literal["", "stop", "timeout"] = ""
        # What cutting short does depends on the phase. A task that has not begun must not be cancelled:
        # none of its body would run, and nobody would hand the item back.
        self.cancel: Callable[[], bool] = lambda: True

    def cut_short(self, reason: Literal["stop", "timeout"]) -> None:
        """Cancel what the visit is doing, unless it is being settled or was cut short before."""
        if not self.cut and self.cancel():
            self.cut = reason

    def settling(self) -> None:
        """From here on the visit is no longer cut short."""
        self.cancel = lambda: False


async def serve(work: Work[T], visit: Visit[T], lanes: Lanes, clock: Clock) -> None:
    """Handle the visit's item in its turn and settle it."""
    item = visit.item
    try:
        if visit.cut:
            await _settle(work, item, Postponed(0.0))
            return
        task = asyncio.current_task()
        assert task is not None
        visit.cancel = task.cancel
        async with lanes.hold(*work.keys(item)):
            await _settle(work, item, await _handle(work, visit, clock))
    except asyncio.CancelledError:
        visit.settling()
        await _settle(work, item, Postponed(0.0))
    except Exception as error:  # noqa: BLE001  # raised by keys(), a caller's own function
        visit.settling()
        await _settle(work, item, Failed(error))


async def _handle(work: Work[T], visit: Visit[T], clock: Clock) -> Ending:
    """Run the handler in a task of its own, so that it can be cancelled while its slot stays taken."""
    visit.started = True
    handling = asyncio.ensure_future(_call(work, visit.item))
    visit.cancel = handling.cancel
    try:
        if not await ends_within(clock, work.timeout, handling):
            log.warning("runner.handler.timed_out", item=repr(visit.item), seconds=work.timeout)
            visit.cut_short("timeout")
            await asyncio.wait({handling})
    finally:
        handling.cancel()  # does nothing unless this task itself is being cancelled from outside
    visit.settling()
    return _ending(handling, visit.cut)


async def _call(work: Work[T], item: T) -> None:
    await work.handler(item)


def _ending(handling: asyncio.Future[None], cut: Literal["", "stop", "timeout"]) -> Ending:
    error = None if handling.cancelled() else handling.exception()
    if cut and error is not None:
        log.warning("runner.handler.failed_after_cancellation", error=repr(error))
    if cut == "timeout":
        return TimedOut()
    if cut == "stop":
        return Postponed(0.0)
    if handling.cancelled():
        return Failed(RuntimeError("the handler was cancelled, but not by its runner"))
    if isinstance(error, NotBeforeError):
        return Postponed(error.seconds)
    if isinstance(error, Exception):
        return Failed(error)
    return Done()


async def _settle(work: Work[T], item: T, ending: Ending) -> None:
    try:
        match ending:
            case Done():
                await work.source.acknowledge(item)
            case Postponed(seconds):
                await work.source.hand_back(item, seconds)
            case TimedOut():
                await _told(work.on_timeout(item))
            case Failed(error):
                await _told(work.on_error(item, error))
    except Exception:
        log.exception("runner.settling.failed", item=repr(item), ending=repr(ending))
        if not isinstance(ending, Postponed):
            await _settle(work, item, Postponed(0.0))


async def _told(answer: Awaitable[None] | None) -> None:
    if inspect.isawaitable(answer):
        await answer
