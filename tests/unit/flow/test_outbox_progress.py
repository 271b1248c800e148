"""Outbox: a message that follows a piece of work."""

import asyncio

from outbox_office import ALICE, Office

from worker.flow.outbox_ops import (
    Sent,
)
from worker.flow.progress import Progress


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
