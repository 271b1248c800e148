"""The outbox queue under any sequence of operations, answers and moments."""

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from worker.flow.outbox_ops import Delete, Edit, Lane, Send, Superseded, Ticket
from worker.flow.outbox_queue import LaneQueue

LANE = Lane(1, 10)
MESSAGES = st.integers(1, 3)
PATIENCE = 10.0
INTERVAL = 1.0


class QueueMachine(RuleBasedStateMachine):
    """Offers, starts, answers and lets time pass at random, and checks what must hold throughout."""

    @initialize()
    def begin(self) -> None:
        self.queue = LaneQueue(INTERVAL, PATIENCE)
        self.places = itertools.count()
        self.now = 0.0
        self.retry_at = 0.0
        self.started: list[float] = []
        self.submitted: list[Ticket] = []  # of plain sends, in order
        self.arrived: list[Ticket] = []
        self.settled: dict[Ticket, object] = {}
        self.offered: set[Ticket] = set()

    def _settle(self, ticket, outcome) -> None:
        assert ticket not in self.settled, "a ticket was settled twice"
        self.settled[ticket] = outcome

    def _offer(self, op, expires_in=1000.0) -> Ticket:
        ticket = Ticket()
        self.offered.add(ticket)
        for settled in self.queue.offer(
            op, ticket, place=next(self.places), now=self.now, expires_at=self.now + expires_in
        ):
            assert settled.outcome == Superseded()
            self._settle(settled.ticket, settled.outcome)
        return ticket

    @rule()
    def send(self) -> None:
        self.submitted.append(self._offer(Send(LANE, "text", 1)))

    @rule(message=MESSAGES)
    def replace(self, message) -> None:
        self._offer(Send(LANE, "summary", 1, message))
        assert ("edit", LANE.chat, message) not in {entry.key for entry in self.queue.pending}

    @rule(message=MESSAGES, expires_in=st.sampled_from([5.0, 1000.0]))
    def edit(self, message, expires_in) -> None:
        self._offer(Edit(LANE, message, "text"), expires_in)

    @rule(message=MESSAGES)
    def delete(self, message) -> None:
        self._offer(Delete(LANE, message))
        assert ("edit", LANE.chat, message) not in {entry.key for entry in self.queue.pending}

    @rule()
    def touch(self) -> None:
        """Order never depends on when an operation was last updated."""
        for entry in self.queue.pending:
            entry.updated_at = -self.now

    @rule(seconds=st.sampled_from([0.1, 1.0, 7.0]))
    def pass_time(self, seconds) -> None:
        self.now += seconds
        for entry in self.queue.expire(self.now):
            # Known to come too late counts as late: Telegram has asked to wait for longer.
            assert entry.expires_at <= max(self.now, self.queue.ready_at)
            self._settle(entry.ticket, "expired")

    @rule()
    def start(self) -> None:
        waiting, flying = self.queue.pending, self.queue.in_flight
        entry = self.queue.take(self.now)
        if entry is None:
            assert flying is not None or not waiting or self.now < self.queue.ready_at
            return
        assert flying is None
        assert self.now >= self.retry_at
        assert not self.started or self.now >= self.started[-1] + INTERVAL
        self.started.append(self.now)
        aged = [one for one in waiting if self.now - one.queued_at >= PATIENCE]
        best = min(aged or waiting, key=lambda one: (0 if aged else one.op.priority, one.place))
        assert entry is best

    @precondition(lambda self: self.queue.in_flight is not None)
    @rule()
    def succeed(self) -> None:
        entry = self.queue.in_flight
        self.queue.finish(entry)
        self._settle(entry.ticket, "sent")
        if entry.ticket in self.submitted:
            self.arrived.append(entry.ticket)

    @precondition(lambda self: self.queue.in_flight is not None)
    @rule(seconds=st.sampled_from([0.5, 5.0, 30.0]))
    def flood(self, seconds) -> None:
        entry = self.queue.in_flight
        self.retry_at = max(self.retry_at, self.now + seconds)
        for settled in self.queue.retry(entry, self.now + seconds):
            assert not (isinstance(entry.op, Send) and entry.op.replaces is None), "a plain send was dropped"
            self._settle(settled.ticket, settled.outcome)

    @invariant()
    def o1_plain_sends_arrive_in_submission_order(self) -> None:
        settled = [ticket for ticket in self.submitted if ticket in self.settled]
        assert [ticket for ticket in settled if ticket in self.arrived] == self.arrived

    @invariant()
    def o3_one_pending_operation_per_key(self) -> None:
        keys = [entry.op.key(entry.place) for entry in self.queue.pending]
        assert len(keys) == len(set(keys)) == len(self.queue)

    @invariant()
    def o5_no_edit_waits_for_a_message_that_is_about_to_go(self) -> None:
        pending = [entry.op for entry in self.queue.pending]
        doomed = {op.dooms for op in pending} - {None}
        assert not [op for op in pending if isinstance(op, Edit) and op.message in doomed]

    @invariant()
    def o9_every_ticket_is_settled_or_still_with_the_queue(self) -> None:
        held = {entry.ticket for entry in self.queue.pending}
        if self.queue.in_flight is not None:
            held.add(self.queue.in_flight.ticket)
        assert held | set(self.settled) == self.offered
        assert not held & set(self.settled)


QueueMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestO1ToO9HoldUnderAnySequence = QueueMachine.TestCase


def test_o15_order_does_not_depend_on_when_an_operation_was_last_updated():
    queue = LaneQueue(0.0, PATIENCE)
    queue.offer(Edit(LANE, 1, "old"), Ticket(), place=0, now=0.0)
    queue.offer(Edit(LANE, 2, "other"), Ticket(), place=1, now=1.0)
    queue.offer(Edit(LANE, 1, "new"), Ticket(), place=2, now=2.0)
    first = queue.take(3.0)
    assert first.op.payload == "new"
    assert (first.queued_at, first.updated_at) == (0.0, 2.0)
