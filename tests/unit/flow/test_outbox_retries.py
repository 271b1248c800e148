"""Outbox: waits, lost connections, paces charged, repeats."""

import asyncio
import socket

import pytest
from manual_clock import settle
from outbox_office import BOB, GROUP, Office

from worker.errors import (
    AlreadyDoneError,
    LeaseLostError,
    NotBeforeError,
    OutcomeUnknownError,
    RetryableError,
)
from worker.flow.outbox_ops import (
    Failed,
    Sent,
    Superseded,
    Unknown,
)


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


async def test_o8_a_write_that_waits_for_permission_starts_when_it_leaves():
    office = Office()
    gate = asyncio.Event()
    office.transport.answer("send", gate)
    await office.send("held up", GROUP)
    await office.send("next", GROUP)
    await office.clock.advance(2)
    office.outbox.left(GROUP)
    gate.set()
    await office.clock.advance(10)
    assert office.transport.moments("send") == [0, 5]


async def test_o8_the_pace_is_charged_for_failures_too():
    office = Office()
    office.transport.answer("send", ValueError("refused"))
    await office.send("a", GROUP)
    await office.send("b", GROUP)
    await office.clock.advance(10)
    assert office.transport.moments("send") == [0, 3]


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
