"""Outbox: order, pace, retries, outcomes, bounds and the end."""

import asyncio
import contextlib
import itertools
import socket

import pytest
from ledger_transport import LedgerTransport
from manual_clock import ManualClock, settle

from worker.errors import LeaseLostError, NotBeforeError, OutcomeUnknownError, RetryableError
from worker.flow.outbox import Outbox, Paces
from worker.flow.outbox_answer import AlreadyDoneError, RetryPolicy
from worker.flow.outbox_ops import (
    Closed,
    Delete,
    Edit,
    Expired,
    Failed,
    Lane,
    Send,
    Sent,
    Superseded,
    Unknown,
)
from worker.flow.progress import Progress

ALICE = Lane(account=1, chat=10, is_private=True)
BOB = Lane(account=1, chat=20, is_private=True)
GROUP = Lane(account=1, chat=30)


class Office:
    """An outbox on a manual clock with a ledger behind it."""

    def __init__(self, **options) -> None:
        self.clock = ManualClock()
        self.transport = LedgerTransport(self.clock)
        self.outbox = Outbox(self.transport, clock=self.clock, **options)
        self._random_ids = iter(range(1, 100000))

    async def send(self, text, lane=ALICE, *, replaces=None, **options):
        return await self.outbox.submit(Send(lane, text, next(self._random_ids), replaces), **options)

    async def edit(self, text, message=7, lane=ALICE, **options):
        return await self.outbox.submit(Edit(lane, message, text), **options)

    async def delete(self, message=7, lane=ALICE, **options):
        return await self.outbox.submit(Delete(lane, message), **options)

    async def block(self, verb="send") -> asyncio.Event:
        """Have one operation of Alice's lane in flight until the returned event is set."""
        gate = asyncio.Event()
        self.transport.answer(verb, gate)
        await (self.send("blocking") if verb == "send" else self.delete())
        await settle()
        return gate


async def test_o1_sends_of_a_lane_arrive_in_submission_order():
    office = Office()
    for text in "abcd":
        await office.send(text)
    await office.clock.advance(10)
    assert office.transport.wrote("send") == ["a", "b", "c", "d"]


@pytest.mark.parametrize("obstacle", [NotBeforeError("flood", seconds=20), RetryableError("connection lost")])
async def test_o1_a_failed_head_stays_at_the_head_until_it_succeeds(obstacle):
    office = Office()
    office.transport.answer("send", obstacle, obstacle)
    tickets = [await office.send(text) for text in "ab"]
    await office.clock.advance(100)
    assert office.transport.tried("send") == ["a", "a", "a", "b"]
    assert [type(ticket.outcome) for ticket in tickets] == [Sent, Sent]


async def test_o1_a_head_that_is_given_up_lets_the_next_go():
    office = Office(retries=RetryPolicy(losses=2))
    office.transport.answer("send", *[RetryableError("connection lost")] * 3)
    first, second = await office.send("a"), await office.send("b")
    await office.clock.advance(100)
    assert office.transport.tried("send") == ["a", "a", "a", "b"]
    assert first.outcome == Unknown()  # one of the lost attempts may have arrived
    assert isinstance(second.outcome, Sent)


async def test_o1_one_operation_of_a_lane_is_in_flight_at_a_time():
    office = Office(paces=Paces(0.0, 0.0))
    gate = await office.block()
    await office.send("next")
    await office.edit("text")
    await settle()
    assert office.transport.most_busy == 1
    assert office.transport.tried("edit") == []
    gate.set()
    await settle()
    assert office.transport.most_busy == 1
    assert len(office.transport.done) == 3


async def test_o2_a_chat_that_waits_delays_no_other_chat():
    office = Office()
    office.transport.answer("send", NotBeforeError("flood", seconds=420))
    await office.send("for alice", ALICE)
    await settle()
    await office.send("for bob", BOB)
    await settle()
    assert office.transport.wrote("send") == ["for bob"]
    assert office.clock.monotonic() == 0


async def test_o2_one_accounts_flood_does_not_hold_back_anothers_send_to_the_same_chat():
    office = Office()
    office.transport.answer("send", NotBeforeError("flood", seconds=420))
    await office.send("by one", Lane(1, 30))
    await settle()
    await office.send("by two", Lane(2, 30))
    await settle()
    assert office.transport.wrote("send") == ["by two"]


@pytest.mark.parametrize(("lane", "gap"), [(ALICE, 1.0), (GROUP, 3.0)])
async def test_o2_the_pace_is_one_a_second_in_private_and_twenty_a_minute_in_groups(lane, gap):
    office = Office()
    for text in "abcd":
        await office.send(text, lane)
    await office.clock.advance(60)
    assert office.transport.moments("send") == [0, gap, 2 * gap, 3 * gap]


async def test_o2_the_pace_is_kept_when_the_lane_has_been_empty_in_between():
    office = Office()
    await office.send("a", GROUP)
    await office.clock.advance(2)
    await office.send("b", GROUP)
    await office.clock.advance(5)
    assert office.transport.moments("send") == [0, 3]


async def test_o2_a_lane_that_is_done_leaves_nothing_behind():
    office = Office()
    for chat in range(1, 200):
        await office.send("hello", Lane(1, chat))
    await office.clock.advance(3)
    assert office.outbox._lanes == {}
    assert len(office.outbox) == 0


async def test_o3_a_newer_edit_takes_over_the_payload_and_keeps_the_place():
    office = Office()
    gate = await office.block()
    first = await office.edit("one", message=1)
    await office.edit("other", message=2)
    second = await office.edit("two", message=1)
    gate.set()
    await office.clock.advance(10)
    assert office.transport.wrote("edit") == [(1, "two"), (2, "other")]
    assert first.outcome == Superseded()
    assert second.outcome == Sent(1)


async def test_o3_the_same_message_id_in_two_chats_is_two_keys():
    office = Office()
    one, other = await office.edit("one", lane=ALICE), await office.edit("other", lane=BOB)
    await office.clock.advance(1)
    assert one.outcome == other.outcome == Sent(7)


async def test_o3_plain_sends_never_take_each_other_over_but_replacements_of_one_message_do():
    office = Office()
    gate = await office.block()
    plain = [await office.send("same"), await office.send("same")]
    first = await office.send("summary one", replaces=7)
    second = await office.send("summary two", replaces=7)
    gate.set()
    await office.clock.advance(10)
    assert [type(ticket.outcome) for ticket in plain] == [Sent, Sent]
    assert first.outcome == Superseded()
    assert isinstance(second.outcome, Sent)
    assert office.transport.wrote("send") == ["blocking", "same", "same", "summary two"]
    assert office.transport.wrote("delete") == [7]


async def test_o3_two_hundred_edits_of_one_message_become_few_writes_with_the_last_text():
    office = Office()
    for number in range(200):
        await office.edit(f"step {number}")
        await office.clock.advance(0.01)
    await office.clock.advance(5)
    assert len(office.transport.wrote("edit")) <= 4
    assert office.transport.wrote("edit")[-1] == (7, "step 199")


async def test_o1_to_o4_two_hundred_edits_and_twenty_sends_to_five_chats_at_once():
    """Sends in order per chat, chats independent, edits coalesced to the last text, paces held."""
    office = Office()
    chats = [Lane(1, chat, is_private=chat % 2 == 0) for chat in range(5)]
    for number in range(200):
        await office.edit(f"step {number}", lane=chats[0])
        if number % 10 == 0:
            await office.send(f"message {number // 10}", chats[number // 10 % 5])
    await office.clock.advance(120)
    for position, lane in enumerate(chats):
        sends = [what for _, verb, where, what in office.transport.done if (verb, where) == ("send", lane)]
        assert sends == [f"message {number}" for number in range(position, 20, 5)]
        starts = [at for at, _, where, _ in office.transport.ledger if where == lane]
        gap = 1.0 if lane.is_private else 3.0
        assert all(later - earlier >= gap for earlier, later in itertools.pairwise(starts))
        assert starts[0] == 0
    assert office.transport.wrote("edit") == [(7, "step 199")]


async def test_o4_sends_go_before_deletes_and_deletes_before_edits():
    office = Office()
    gate = await office.block()
    await office.edit("edit", message=1)
    await office.delete(message=2)
    await office.send("send")
    gate.set()
    await office.clock.advance(10)
    assert [verb for _, verb, _, _ in office.transport.done] == ["send", "send", "delete", "edit"]


async def test_o4_ageing_guarantees_that_an_edit_runs_within_a_bound():
    office = Office(patience=10)
    await office.send("first")
    await office.edit("progress")
    for number in range(40):  # as many sends as the pace allows, without end
        await office.send(str(number))
        await office.clock.advance(1)
    assert office.transport.moments("edit") == [10]
    sends = office.transport.wrote("send")
    assert sends == ["first", *map(str, range(len(sends) - 1))]


@pytest.mark.parametrize("ending", ["delete", "replace"])
async def test_o5_a_delete_or_a_replacement_cancels_the_pending_edit(ending):
    office = Office()
    gate = await office.block()
    edit = await office.edit("late news")
    await (office.delete(7) if ending == "delete" else office.send("summary", replaces=7))
    assert edit.outcome == Superseded()
    gate.set()
    await office.clock.advance(10)
    assert office.transport.tried("edit") == []


@pytest.mark.parametrize("ending", ["delete", "replace"])
async def test_o5_it_also_cancels_an_edit_that_was_in_flight_and_came_back_for_retry(ending):
    office, gate = Office(), asyncio.Event()

    async def flooded(lane, message, payload):
        await gate.wait()
        raise NotBeforeError("flood", seconds=5)

    office.transport.edit = flooded
    edit = await office.edit("late news")
    await settle()
    await (office.delete(7) if ending == "delete" else office.send("summary", replaces=7))
    assert edit.outcome is None
    gate.set()
    await office.clock.advance(60)
    assert edit.outcome == Superseded()
    assert office.transport.wrote("delete") == [7]


async def test_o5_an_edit_of_a_message_that_is_about_to_go_is_not_queued_at_all():
    office = Office()
    gate = await office.block("delete")
    assert (await office.edit("too late")).outcome == Superseded()
    gate.set()
    await office.clock.advance(10)
    assert office.transport.tried("edit") == []


async def test_o6_the_old_message_is_deleted_only_after_the_new_one_is_confirmed():
    office = Office()
    gate = asyncio.Event()
    office.transport.answer("send", gate)
    ticket = await office.send("summary", replaces=7)
    await office.clock.advance(30)
    assert office.transport.tried("delete") == []
    gate.set()
    await office.clock.advance(30)
    assert isinstance(ticket.outcome, Sent)
    assert office.transport.wrote("delete") == [7]


@pytest.mark.parametrize("refusal", [ValueError("refused"), OutcomeUnknownError("cut off")])
async def test_o6_a_replacement_that_did_not_surely_arrive_deletes_nothing(refusal):
    office = Office()
    office.transport.answer("send", refusal)
    await office.send("summary", replaces=7)
    await office.clock.advance(30)
    assert office.transport.tried("delete") == []


@pytest.mark.parametrize(("given", "waited"), [(20, 20), (0, 5)])
async def test_o7_the_operation_is_retried_after_the_wait_that_was_asked_for_or_five_seconds(given, waited):
    office = Office()
    office.transport.answer("send", NotBeforeError("flood", seconds=given))
    ticket = await office.send("a")
    await office.clock.advance(waited - 0.1)
    assert len(office.transport.ledger) == 1
    await office.clock.advance(0.1)
    assert office.transport.moments("send") == [0, waited]
    assert isinstance(ticket.outcome, Sent)


async def test_o7_a_newer_operation_with_its_key_takes_its_place_instead():
    office = Office()
    gate = asyncio.Event()
    calls = []

    async def flooded_once(lane, message, payload):
        calls.append((message, payload))
        if len(calls) == 1:
            await gate.wait()
            raise NotBeforeError("flood", seconds=5)

    office.transport.edit = flooded_once
    old = await office.edit("old", message=1)
    await settle()
    await office.edit("other", message=2)
    new = await office.edit("new", message=1)
    gate.set()
    await office.clock.advance(20)
    assert calls == [(1, "old"), (1, "new"), (2, "other")]
    assert old.outcome == Superseded()
    assert new.outcome == Sent(1)


@pytest.mark.parametrize(
    "loss", [RetryableError("lost"), ConnectionResetError(), socket.gaierror("no such name"), TimeoutError()]
)
async def test_o7_lost_connections_and_failed_name_resolution_are_retried_after_ten_seconds(loss):
    office = Office()
    office.transport.answer("send", loss)
    await office.send("a")
    await office.send("b")
    await office.clock.advance(30)
    assert list(zip(office.transport.tried("send"), office.transport.moments("send"), strict=True)) == [
        ("a", 0),
        ("a", 10),
        ("b", 11),
    ]


async def test_o8_the_pace_is_measured_from_start_to_start():
    office = Office()
    gate = asyncio.Event()
    office.transport.answer("send", gate)
    await office.send("slow", GROUP)
    await office.send("next", GROUP)
    await office.clock.advance(2)
    gate.set()
    await office.clock.advance(10)
    assert office.transport.moments("send") == [0, 3]


async def test_o8_the_pace_is_charged_for_failures_too():
    office = Office()
    office.transport.answer("send", ValueError("refused"))
    await office.send("a", GROUP)
    await office.send("b", GROUP)
    await office.clock.advance(10)
    assert office.transport.moments("send") == [0, 3]


async def test_o9_a_callback_that_raises_changes_nothing():
    office = Office()
    ticket, seen = await office.send("a"), []

    def explode(outcome):
        raise RuntimeError("callback")

    ticket.on_outcome(explode)
    ticket.on_outcome(seen.append)
    await office.send("b")
    await office.clock.advance(5)
    assert seen == [ticket.outcome]
    assert office.transport.wrote("send") == ["a", "b"]
    ticket.on_outcome(explode)  # late: called at once, and just as harmless


async def test_o9_an_outcome_is_set_once():
    office = Office()
    ticket = await office.send("a")
    await settle()
    sent = ticket.outcome
    assert not ticket.resolve(Closed())
    office.outbox.withdraw(ticket)
    await office.outbox.close()
    assert ticket.outcome is sent
    assert await ticket is sent


async def test_o9_every_waiter_gets_the_outcome_and_a_cancelled_one_takes_it_from_nobody():
    office = Office()
    gate = asyncio.Event()
    office.transport.answer("send", gate)
    ticket = await office.send("a")

    async def wait():
        return await ticket

    waiters = [asyncio.create_task(wait()) for _ in range(3)]
    await settle()
    waiters[0].cancel()
    gate.set()
    assert [type(await waiter) for waiter in waiters[1:]] == [Sent, Sent]


async def test_o9_an_operation_whose_time_passed_expires_even_during_a_flood():
    office = Office()
    office.transport.answer("send", NotBeforeError("flood", seconds=420))
    await office.send("head")
    ticket = await office.send("stale soon", expires_in=60)
    await office.clock.advance(60)
    assert ticket.outcome == Expired()


async def test_o9_a_send_that_expires_after_a_lost_attempt_is_unknown():
    office = Office()
    office.transport.answer("send", RetryableError("lost"))
    ticket = await office.send("a", expires_in=5)
    await office.clock.advance(5)
    assert ticket.outcome == Unknown()


async def test_o9_a_caller_that_is_cancelled_withdraws_what_was_not_started():
    office = Office()
    gate = await office.block()
    delivery = asyncio.create_task(office.outbox.deliver(Send(ALICE, "never", 1)))
    await settle()
    delivery.cancel()
    await settle()
    gate.set()
    await office.clock.advance(10)
    assert office.transport.wrote("send") == ["blocking"]
    assert len(office.outbox) == 0


async def test_o9_in_flight_when_cancelled_is_unknown():
    office = Office()
    office.transport.answer("send", asyncio.Event())
    ticket = await office.send("a")
    await settle()
    office.outbox.withdraw(ticket)
    assert ticket.outcome == Unknown()
    await office.send("b")
    await office.clock.advance(5)
    assert [what for _, _, _, what in office.transport.cancelled] == ["a"]
    assert office.transport.wrote("send") == ["b"]


@pytest.mark.parametrize("late_answer", ["success", "flood"])
async def test_o9_what_was_withdrawn_in_flight_has_no_consequences_whatever_the_late_answer(late_answer):
    office, calls, gate = Office(), [], asyncio.Event()

    async def stubborn(lane, payload, random_id):
        calls.append(payload)
        while not gate.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()
        if late_answer == "flood":
            raise NotBeforeError("flood", seconds=5)
        return 1

    office.transport.send = stubborn
    ticket = await office.send("summary", replaces=7)
    await settle()
    office.outbox.withdraw(ticket)
    gate.set()
    await office.clock.advance(60)
    assert ticket.outcome == Unknown()
    assert calls == ["summary"]
    assert office.transport.tried("delete") == []


@pytest.mark.parametrize("error", [ValueError("refused"), LeaseLostError("somebody else owns it")])
async def test_o10_a_fatal_error_advances_the_lane_exactly_once_and_is_reported(error):
    office = Office()
    office.transport.answer("send", error)
    failed, following, last = [await office.send(text) for text in "abc"]
    await office.clock.advance(10)
    assert failed.outcome == Failed(error)
    assert office.transport.tried("send") == ["a", "b", "c"]
    assert isinstance(following.outcome, Sent)
    assert isinstance(last.outcome, Sent)


async def test_o10_a_synchronous_exception_stalls_nothing():
    office = Office()
    error = ValueError("raised before anything was awaited")
    office.transport.answer("delete", error)
    broken, fine = await office.delete(1), await office.delete(2)
    await office.clock.advance(10)
    assert broken.outcome == Failed(error)
    assert fine.outcome == Sent(2)


async def test_o11_a_send_that_is_retried_uses_the_same_random_id():
    office = Office()
    office.transport.answer("send", RetryableError("lost"), NotBeforeError("flood", seconds=1))
    await office.send("a")
    await office.send("b")
    await office.clock.advance(60)
    assert office.transport.random_ids == [1, 1, 1, 2]


async def test_o11_already_sent_counts_as_sent():
    office = Office()
    office.transport.answer(
        "send", AlreadyDoneError("sent before", message=55), AlreadyDoneError("sent before")
    )
    known, unknown = await office.send("a"), await office.send("b")
    await office.clock.advance(5)
    assert known.outcome == Sent(55)
    assert unknown.outcome == Sent(None)


@pytest.mark.parametrize("verb", ["edit", "delete"])
async def test_o11_not_modified_and_already_deleted_are_successes(verb):
    office = Office()
    office.transport.answer(verb, AlreadyDoneError("nothing to do", message=7))
    ticket = await (office.edit("same") if verb == "edit" else office.delete())
    await settle()
    assert ticket.outcome == Sent(7)


async def test_o11_an_unknown_outcome_is_retried_for_edits_and_handed_over_for_sends():
    office = Office()
    office.transport.answer("edit", OutcomeUnknownError("cut off"))
    office.transport.answer("send", OutcomeUnknownError("cut off"))
    send, edit = await office.send("a"), await office.edit("text", lane=BOB)
    await office.clock.advance(30)
    assert send.outcome == Unknown()
    assert office.transport.tried("send") == ["a"]
    assert edit.outcome == Sent(7)


async def test_o12_close_returns_within_its_drain_time_and_what_did_not_go_out_is_closed():
    office = Office()
    tickets = [await office.send(text, GROUP) for text in "abcd"]
    closing = asyncio.create_task(office.outbox.close(drain=5))
    await office.clock.advance(5)
    assert closing.done()
    assert [type(ticket.outcome) for ticket in tickets] == [Sent, Sent, Closed, Closed]
    await office.clock.advance(60)
    assert office.transport.tried("send") == ["a", "b"]


async def test_o12_close_returns_as_soon_as_everything_is_out():
    office = Office()
    await office.send("a")
    closing = asyncio.create_task(office.outbox.close(drain=3600))
    await settle()
    assert closing.done()


async def test_o12_what_is_in_flight_at_the_end_is_unknown_even_if_it_ignores_its_cancellation():
    office = Office()
    started, gate = asyncio.Event(), asyncio.Event()

    async def stubborn(lane, payload, random_id):
        started.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return 1

    office.transport.send = stubborn
    fired = []
    ticket = await office.send("a", replaces=7)
    ticket.on_outcome(fired.append)
    await started.wait()
    await asyncio.wait_for(office.outbox.close(), 1)
    assert fired == [Unknown()]
    gate.set()
    await office.clock.advance(60)
    assert fired == [Unknown()]
    assert office.transport.tried("delete") == []


async def test_o12_after_close_no_task_is_left():
    office = Office()
    await office.block()
    await office.send("waiting", GROUP)
    await office.send("waiting", BOB)
    await office.outbox.close()
    await settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_o12_after_close_nothing_is_taken_in_and_closing_again_is_harmless():
    office = Office()
    await asyncio.gather(office.outbox.close(), office.outbox.close(drain=5))
    assert (await office.send("late")).outcome == Closed()
    await office.outbox.close(drain=5)
    assert office.transport.ledger == []


async def test_o12_close_may_be_called_from_within_a_write():
    office = Office()

    async def close_meanwhile(lane, payload, random_id):
        await office.outbox.close(drain=2)
        return 1

    office.transport.send = close_meanwhile
    ticket = await office.send("a")
    waiting = await office.send("b")
    await office.clock.advance(2)
    assert ticket.outcome == Unknown()
    assert waiting.outcome == Closed()


async def test_o13_submit_waits_while_there_is_no_room():
    office = Office(capacity=2)
    gate = await office.block()
    await office.send("a")
    submitting = [asyncio.create_task(office.send(text)) for text in "bc"]
    await settle()
    assert not any(task.done() for task in submitting)
    assert len(office.outbox) == 2
    gate.set()
    await office.clock.advance(10)
    assert all(task.done() for task in submitting)
    assert office.transport.wrote("send") == ["blocking", "a", "b", "c"]


async def test_o13_cosmetic_edits_are_dropped_first_and_sends_never():
    office = Office(capacity=3)
    gate = await office.block()
    oldest, newer = await office.edit("one", message=1), await office.edit("two", message=2)
    media = await office.send("media")
    assert oldest.outcome == Expired()
    assert newer.outcome is None
    assert (await office.edit("three", message=3)).outcome == Expired()
    gate.set()
    await office.clock.advance(10)
    assert isinstance(media.outcome, Sent)
    assert newer.outcome == Sent(2)


async def test_o13_an_edit_that_takes_over_a_pending_one_needs_no_room():
    office = Office(capacity=2)
    gate = await office.block()
    await office.edit("one")
    newer = await office.edit("two")
    assert newer.outcome is None
    gate.set()
    await office.clock.advance(5)
    assert office.transport.wrote("edit") == [(7, "two")]


async def test_o13_a_cancelled_submission_leaves_nothing_and_those_behind_it_enter():
    office = Office(capacity=1)
    gate = await office.block()
    given_up, patient = (asyncio.create_task(office.send(text)) for text in ("x", "y"))
    await settle()
    given_up.cancel()
    await settle()
    gate.set()
    await office.clock.advance(5)
    assert office.transport.wrote("send") == ["blocking", "y"]
    assert isinstance((await patient).outcome, Sent)


async def test_o13_submissions_that_wait_for_room_are_closed_with_the_outbox():
    office = Office(capacity=1)
    await office.block()
    waiting = asyncio.create_task(office.send("x"))
    await settle()
    await office.outbox.close()
    assert (await waiting).outcome == Closed()


async def test_o14_only_a_difference_enqueues_an_edit():
    office = Office()
    progress = Progress(office.outbox, ALICE, iter(range(1, 99)).__next__)
    for text in ["10 %", "10 %", "20 %", "20 %", "20 %", "30 %"]:
        await progress.show(text)
        await office.clock.advance(2)
    assert office.transport.wrote("send") == ["10 %"]
    assert office.transport.wrote("edit") == [(100, "20 %"), (100, "30 %")]


async def test_o14_the_summary_replaces_the_message_by_sending_first():
    office = Office()
    progress = Progress(office.outbox, ALICE, iter(range(1, 99)).__next__)
    await progress.show("working")
    finishing = asyncio.create_task(progress.finish("done"))
    await office.clock.advance(10)
    assert finishing.result() == Sent(101)
    assert [verb for _, verb, _, _ in office.transport.done] == ["send", "send", "delete"]
    assert office.transport.wrote("delete") == [100]


async def test_o14_a_message_that_somebody_deleted_is_sent_anew():
    office = Office()
    progress = Progress(office.outbox, ALICE, iter(range(1, 99)).__next__)
    office.transport.answer("edit", ValueError("no such message"))
    for text in ["10 %", "20 %", "30 %"]:
        await progress.show(text)
        await office.clock.advance(2)
    assert office.transport.wrote("send") == ["10 %", "30 %"]


async def test_o14_a_progress_message_that_was_refused_is_tried_again_at_the_next_step():
    office = Office()
    progress = Progress(office.outbox, ALICE, iter(range(1, 99)).__next__)
    office.transport.answer("send", ValueError("refused"))
    for text in ["10 %", "10 %", "20 %"]:
        await progress.show(text)
        await office.clock.advance(2)
    assert office.transport.tried("send") == ["10 %", "10 %"]
    assert office.transport.wrote("edit") == [(100, "20 %")]
