"""Every visible write to Telegram: keyed, coalescing, prioritised, paced, retried, a lane per account and
chat.

Contract. ``submit`` queues an operation and gives a ticket that resolves exactly once. A lane writes one
operation at a time and waits for nobody but itself: its pace is measured from start to start (``left`` says
that a write started later than it was handed over) and charged for failures too. The outbox is the only layer
that retries a write. Its size is bounded: with no room left, pending edits are dropped first, then ``submit``
waits; nothing else is ever dropped. ``close`` returns in time, from whatever task, and nothing is written
after it.

``outbox_queue`` decides what goes next, ``outbox_answer`` what an answer means, ``outbox_lane`` drives a
lane; this module takes in, keeps the bounds and closes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from worker.clock import Clock, SystemClock
from worker.flow.outbox_answer import RetryPolicy
from worker.flow.outbox_lane import LaneDriver, Surroundings, Transport
from worker.flow.outbox_ops import Closed, Edit, Expired, Ticket
from worker.flow.outbox_queue import LaneQueue
from worker.flow.waiting import ends_within

if TYPE_CHECKING:
    from worker.flow.outbox_ops import Lane, Op, Outcome

P = TypeVar("P")
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Paces:
    """Seconds between the starts of two operations in one lane."""

    private: float = 1.0
    group: float = 3.0

    def interval(self, lane: Lane) -> float:
        """The interval of this lane."""
        return self.private if lane.is_private else self.group


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[P]):
    """A submission for which there is no room yet."""

    op: Op[P]
    ticket: Ticket
    expires_at: float
    admitted: asyncio.Future[None]

    def admit(self) -> None:
        if not self.admitted.done():
            self.admitted.set_result(None)


class Outbox(Generic[P]):
    """The lanes that have something to do, and the tickets that have no outcome yet."""

    def __init__(
        self,
        transport: Transport[P],
        *,
        paces: Paces = Paces(),  # noqa: B008  # frozen
        retries: RetryPolicy = RetryPolicy(),  # noqa: B008  # frozen
        capacity: int = 1000,
        patience: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._around = Surroundings(
            transport, retries, self._clock, self._resolve, self._follow_up, self._leave
        )
        self._paces = paces
        self._capacity = capacity
        self._patience = patience
        self._places = itertools.count()
        self._lanes: dict[Lane, LaneDriver[P]] = {}
        self._open: dict[Ticket, Lane] = {}
        self._waiting: deque[_Waiting[P]] = deque()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = False

    def __len__(self) -> int:
        """How many operations are pending or in flight."""
        return len(self._open)

    def left(self, lane: Lane) -> None:
        """A write leaves only now, having waited for permission: its lane's pace counts from here."""
        if (driver := self._lanes.get(lane)) is not None:
            driver.queue.left(self._clock.monotonic())

    async def submit(self, op: Op[P], *, expires_in: float = _NEVER) -> Ticket:
        """Queue an operation, waiting for room if need be; unstarted after ``expires_in`` s, it expires."""
        ticket = Ticket()
        expires_at = self._clock.monotonic() + expires_in
        if self._closing:
            ticket.resolve(Closed())
        elif self._fits(op):
            self._enqueue(op, ticket, expires_at)
        elif isinstance(op, Edit):
            ticket.resolve(Expired())
        else:
            waiting = _Waiting(op, ticket, expires_at, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            self._drop_an_edit()
            try:
                await waiting.admitted
            except asyncio.CancelledError:
                self.withdraw(ticket)
                raise
        return ticket

    async def deliver(self, op: Op[P], *, expires_in: float = _NEVER) -> Outcome:
        """Submit and wait for the outcome; if the caller is cancelled, the operation is withdrawn."""
        ticket = await self.submit(op, expires_in=expires_in)
        try:
            return await ticket
        except asyncio.CancelledError:
            self.withdraw(ticket)
            raise

    def withdraw(self, ticket: Ticket) -> None:
        """Give an operation up: Closed if nothing of it can have been written, Unknown otherwise."""
        lane = self._open.get(ticket)
        if lane is not None:
            self._lanes[lane].withdraw(ticket)
        else:
            ticket.resolve(Closed())  # it waits for room, unless it has its outcome already

    async def close(self, drain: float = 0.0) -> None:
        """Take nothing more, write on for ``drain`` seconds, then stop and resolve what is left."""
        self._closing = True
        while self._waiting:
            waiting = self._waiting.popleft()
            waiting.ticket.resolve(Closed())
            waiting.admit()
        if drain > 0 and self._open:
            empty = asyncio.ensure_future(self._empty.wait())
            try:
                await ends_within(self._clock, drain, empty)
            finally:
                empty.cancel()
        for driver in self._lanes.values():
            driver.stop()
        for ticket in list(self._open):
            self.withdraw(ticket)
        self._lanes.clear()

    def _fits(self, op: Op[P]) -> bool:
        if len(self._open) < self._capacity:
            return True
        driver = self._lanes.get(op.lane)
        # Taking over a pending operation needs no room of its own; no pending plain send has place -1.
        return driver is not None and driver.queue.has(op.key(-1))

    def _drop_an_edit(self) -> None:
        edits = [e for driver in self._lanes.values() for e in driver.queue.pending if isinstance(e.op, Edit)]
        if edits:
            oldest = min(edits, key=lambda entry: entry.place)
            self._lanes[oldest.op.lane].queue.remove(oldest)
            self._resolve(oldest.ticket, Expired())

    def _enqueue(self, op: Op[P], ticket: Ticket, expires_at: float) -> None:
        driver = self._lanes.get(op.lane)
        if driver is None:
            queue = LaneQueue[P](self._paces.interval(op.lane), self._patience)
            driver = self._lanes[op.lane] = LaneDriver(op.lane, queue, self._around)
        self._open[ticket] = op.lane
        self._empty.clear()
        place, now = next(self._places), self._clock.monotonic()
        for settled in driver.queue.offer(op, ticket, place=place, now=now, expires_at=expires_at):
            self._resolve(settled.ticket, settled.outcome)
        driver.nudge()

    def _follow_up(self, op: Op[P]) -> None:
        """Queue what an operation entails, room or not: it was promised when that operation was taken in."""
        self._enqueue(op, Ticket(), _NEVER)

    def _leave(self, lane: Lane) -> None:
        del self._lanes[lane]

    def _resolve(self, ticket: Ticket, outcome: Outcome) -> None:
        self._open.pop(ticket, None)
        ticket.resolve(outcome)
        while self._waiting and len(self._open) < self._capacity:
            waiting = self._waiting.popleft()
            if waiting.ticket.outcome is None:
                self._enqueue(waiting.op, waiting.ticket, waiting.expires_at)
                waiting.admit()
        if not self._open:
            self._empty.set()
