"""Outbox: one outcome for every ticket, bounds, and the end."""

import asyncio
import contextlib

import pytest
from hang_guard import HANG_SECONDS
from manual_clock import settle
from outbox_office import ALICE, BOB, GROUP, Office

from worker.errors import NotBeforeError, RetryableError
from worker.flow.outbox_ops import (
    Closed,
    Expired,
    Send,
    Sent,
    Unknown,
)


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


async def test_o9_an_operation_that_cannot_start_in_its_time_expires_at_once_and_says_how_long_the_flood_is():
    office = Office()
    office.transport.answer("send", NotBeforeError("flood", seconds=420))
    await office.send("head")
    await office.clock.advance(20)
    ticket = await office.send("stale soon", expires_in=60)
    await office.clock.advance(0)
    assert ticket.outcome == Expired(seconds=400)


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
    await asyncio.wait_for(office.outbox.close(), HANG_SECONDS)
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
