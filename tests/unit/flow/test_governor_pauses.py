"""Pauses: what they cover, when they take effect, when work goes on."""

import asyncio

import pytest
from manual_clock import ManualClock, settle

from worker.domain.pauses import Pause, in_the_way
from worker.errors import RetryableError
from worker.flow.pause_gate import PauseGate


class ListStore:
    def __init__(self) -> None:
        self.kept: list[Pause] = []
        self.away = False

    async def pauses(self):
        if self.away:
            raise RetryableError("the database is away")
        return list(self.kept)


@pytest.mark.parametrize(
    ("pause", "covered"),
    [
        (Pause(), True),
        (Pause(account=1), True),
        (Pause(account=2), False),
        (Pause(channel=5), True),
        (Pause(channel=6), False),
        (Pause(account=1, channel=5), True),
        (Pause(account=2, channel=5), False),
    ],
)
def test_g14_a_pause_covers_what_it_names(pause, covered):
    assert pause.covers(1, 5) is covered


def test_g14_the_longest_pause_counts():
    assert in_the_way([Pause(seconds_left=5), Pause(account=1), Pause(seconds_left=60)], 1, None) == Pause(
        account=1
    )
    assert in_the_way([Pause(account=2)], 1, None) is None


async def test_g14_a_pause_takes_effect_before_the_next_page():
    store, clock = ListStore(), ManualClock()
    gate, pages = PauseGate(store, clock), []

    async def scan():
        for page in range(3):
            await gate.passed(1, 5)
            pages.append(page)
            await clock.sleep(1)

    scanning = asyncio.create_task(scan())
    await settle()
    store.kept.append(Pause(account=1))
    await clock.advance(100)
    assert pages == [0]
    store.kept.clear()
    gate.notify()
    await settle()
    assert pages == [0, 1]
    scanning.cancel()


async def test_g14_resume_wakes_all_that_wait_at_once():
    store, clock = ListStore(), ManualClock()
    gate = PauseGate(store, clock)
    store.kept.append(Pause())
    waiting = [asyncio.create_task(gate.passed(account)) for account in range(5)]
    await settle()
    store.kept.clear()
    gate.notify()
    await settle()
    assert all(task.done() for task in waiting)
    assert clock.monotonic() == 0


async def test_g14_polling_is_the_fallback_when_no_notification_comes():
    store, clock = ListStore(), ManualClock()
    gate = PauseGate(store, clock, look_again=5)
    store.kept.append(Pause())
    waiting = asyncio.create_task(gate.passed(1))
    await settle()
    store.kept.clear()
    await clock.advance(5)
    assert waiting.done()


async def test_g14_a_pause_for_a_while_ends_by_itself():
    clock = ManualClock()

    class Timed:
        async def pauses(self):
            left = 7 - clock.monotonic()
            return [Pause(seconds_left=left)] if left > 0 else []

    waiting = asyncio.create_task(PauseGate(Timed(), clock).passed(1))
    await clock.advance(6.9)
    assert not waiting.done()
    await clock.advance(0.1)
    assert waiting.done()


async def test_g14_a_change_while_the_answer_is_on_its_way_is_not_missed():
    clock = ManualClock()

    class Slow(ListStore):
        async def pauses(self):
            found = await super().pauses()
            if found:
                self.kept.clear()
                gate.notify()
            return found

    store = Slow()
    store.kept.append(Pause())
    gate = PauseGate(store, clock)
    await asyncio.wait_for(gate.passed(1), 5)


async def test_g16_while_the_pauses_cannot_be_read_work_waits():
    store, clock = ListStore(), ManualClock()
    store.away = True
    waiting = asyncio.create_task(PauseGate(store, clock).passed(1))
    await clock.advance(60)
    assert not waiting.done()
    store.away = False
    await clock.advance(5)
    assert waiting.done()
