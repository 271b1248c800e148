"""Outbox: order, pace and coalescing."""

import asyncio
import itertools

import pytest
from manual_clock import settle
from outbox_office import ALICE, BOB, GROUP, Office

from worker.errors import NotBeforeError, OutcomeUnknownError, RetryableError
from worker.flow.outbox import Paces
from worker.flow.outbox_answer import RetryPolicy
from worker.flow.outbox_ops import (
    Lane,
    Sent,
    Superseded,
    Unknown,
)


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
