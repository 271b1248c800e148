"""Drives one lane of the outbox: waits for its pace, writes what the queue says, and tells what came of it.

Contract. One write at a time. The driver ends by itself once its queue is empty and its pace is free again,
so that a chat which was written to once costs nothing for ever. A write that raises, even before it awaits
anything, only ends or postpones that one operation. Once ``stop`` was called nothing is written any more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from worker.flow.outbox_answer import Again, RetryPolicy, judge, too_late
from worker.flow.outbox_ops import Closed, Delete, Edit, Failed, Send, Sent, Unknown
from worker.flow.waiting import ends_within
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.clock import Clock
    from worker.flow.outbox_ops import Lane, Op, Outcome, Ticket
    from worker.flow.outbox_queue import Entry, LaneQueue

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)
log = get_logger(__name__)


class Transport(Protocol[P_contra]):
    """Writes once, and raises what ``outbox_answer`` understands. It never retries."""

    async def send(self, lane: Lane, payload: P_contra, random_id: int) -> int:
        """Send a message and return its id."""
        ...

    async def edit(self, lane: Lane, message: int, payload: P_contra) -> None:
        """Replace a message's contents."""
        ...

    async def delete(self, lane: Lane, message: int) -> None:
        """Delete a message."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings(Generic[P]):
    """What a driver needs of the outbox that it works for."""

    transport: Transport[P]
    retries: RetryPolicy
    clock: Clock
    resolve: Callable[[Ticket, Outcome], None]
    follow_up: Callable[[Op[P]], None]
    leave: Callable[[Lane], None]


class LaneDriver(Generic[P]):
    """The queue of one lane, the task that drives it, and the write in flight."""

    def __init__(self, lane: Lane, queue: LaneQueue[P], around: Surroundings[P]) -> None:
        self.queue = queue
        self._lane = lane
        self._around = around
        self._changed = asyncio.Event()
        self._call: asyncio.Future[int] | None = None
        self._task = asyncio.ensure_future(self._drive())

    def nudge(self) -> None:
        """Something was queued: look again."""
        self._changed.set()

    def stop(self) -> None:
        """Cancel the driver and the write in flight."""
        self._task.cancel()

    def withdraw(self, ticket: Ticket) -> None:
        """Give one operation up: Closed if nothing of it can have been written, Unknown otherwise."""
        flying = self.queue.in_flight
        if flying is not None and flying.ticket is ticket:
            self._around.resolve(ticket, Unknown())
            if self._call is not None:
                self._call.cancel()
            return
        for entry in self.queue.pending:
            if entry.ticket is ticket:
                self.queue.remove(entry)
                late = too_late(entry)
                self._around.resolve(ticket, late if isinstance(late, Unknown) else Closed())

    async def _drive(self) -> None:
        queue, clock = self.queue, self._around.clock
        while True:
            now = clock.monotonic()
            for late in queue.expire(now):
                self._around.resolve(late.ticket, too_late(late, max(0.0, queue.ready_at - now)))
            entry = queue.take(now)
            if entry is not None:
                await self._write(entry)
            elif not queue and now >= queue.ready_at:
                self._around.leave(self._lane)
                return
            else:
                await self._until(queue.wake_at - now)

    async def _until(self, seconds: float) -> None:
        self._changed.clear()
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await ends_within(self._around.clock, seconds, changed)
        finally:
            changed.cancel()

    async def _write(self, entry: Entry[P]) -> None:
        self._call = asyncio.ensure_future(self._perform(entry.op))
        try:
            await asyncio.wait({self._call})
        finally:
            self._call.cancel()  # has an effect only if this task is itself being cancelled
        answer = self._answer(self._call, entry)
        self._call = None
        if entry.ticket.outcome is not None:
            self.queue.finish(entry)  # withdrawn while in flight: its outcome was Unknown and stays so
        elif isinstance(answer, Again):
            for settled in self.queue.retry(entry, self._around.clock.monotonic() + answer.seconds):
                self._around.resolve(settled.ticket, settled.outcome)
        else:
            self.queue.finish(entry)
            self._conclude(entry, answer)

    def _answer(self, call: asyncio.Future[int], entry: Entry[P]) -> Outcome | Again:
        if call.cancelled():
            return Unknown()
        try:
            return Sent(call.result())
        except Exception as error:  # noqa: BLE001  # whatever it is, it ends or postpones this operation only
            return judge(entry, error, self._around.retries)

    def _conclude(self, entry: Entry[P], outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            log.error("outbox.write.failed", lane=self._lane, key=entry.key, error=repr(outcome.error))
        if isinstance(outcome, Sent) and isinstance(entry.op, Send) and entry.op.replaces is not None:
            self._around.follow_up(Delete(self._lane, entry.op.replaces))
        self._around.resolve(entry.ticket, outcome)

    async def _perform(self, op: Op[P]) -> int:
        transport = self._around.transport
        match op:
            case Send():
                return await transport.send(op.lane, op.payload, op.random_id)
            case Edit():
                await transport.edit(op.lane, op.message, op.payload)
            case Delete():
                await transport.delete(op.lane, op.message)
        return op.message
