"""Governor: who may call, when, and what is learned."""

import asyncio
import itertools

import pytest
from governor_desk import HISTORY, SEARCH, Desk, flood
from hang_guard import HANG_SECONDS
from manual_clock import settle

from worker.domain.calls import Call
from worker.errors import NotBeforeError, RetryableError, UserError
from worker.flow.flood import read
from worker.flow.governor import FloodedError
from worker.flow.limits import DEFAULT


async def test_g3_the_store_is_asked_before_every_call_and_once():
    desk = Desk()
    assert await desk.governor.call(HISTORY, desk.work()) == "page"
    assert desk.store.trips == 1


async def test_g3_a_later_shorter_wait_does_not_shorten_a_block():
    desk = Desk()
    call = desk.call(HISTORY, flood(420), patience=1000)
    await settle()
    await desk.governor.flooded(HISTORY, read("FLOOD_WAIT_5"))
    await desk.clock.advance(421)
    assert desk.moments == [0]
    await desk.clock.advance(1)
    assert await call == "page"


async def test_g4_a_block_stops_no_other_account_and_no_other_method():
    desk = Desk()
    blocked = desk.call(HISTORY, flood(420), patience=1000)
    await settle()
    assert await desk.governor.call(SEARCH, desk.work()) == "page"
    assert await desk.governor.call(Call(2, HISTORY.method, chat=5), desk.work()) == "page"
    assert not blocked.done()
    blocked.cancel()


async def test_g4_slow_mode_stops_only_that_chat():
    desk = Desk()
    slow = desk.call(
        Call(1, "messages.sendMessage", chat=5), flood(30, "SLOWMODE_WAIT"), patience=1000, name="slow"
    )
    await settle()
    assert await desk.governor.call(Call(1, "messages.sendMessage", chat=6), desk.work()) == "page"
    await desk.clock.advance(30)
    assert not slow.done()
    await desk.clock.advance(2)
    assert await slow == "page"


async def test_g5_a_call_that_was_waiting_for_its_turn_does_not_start_while_blocked():
    desk = Desk()
    gate = asyncio.Event()

    async def flooded_later():
        await gate.wait()
        raise flood(100)

    first = asyncio.create_task(desk.governor.call(HISTORY, flooded_later, patience=1000))
    burst = [desk.call(Call(1, HISTORY.method, chat=chat), patience=1000) for chat in range(6, 12)]
    await settle()
    waiting = [task for task in burst if not task.done()]
    assert waiting  # for their pace
    gate.set()
    await desk.clock.advance(100)
    assert not any(task.done() for task in waiting)
    await desk.clock.advance(60)
    assert all(task.done() for task in waiting)
    first.cancel()


@pytest.mark.parametrize(("text", "asked"), [("FLOOD_WAIT_20", 20), ("FLOOD_WAIT_0", 1), ("FLOOD_WAIT", 60)])
async def test_g6_calls_resume_between_one_and_two_seconds_after_the_wait(text, asked):
    desk = Desk()
    call = desk.call(HISTORY, UserError(text), patience=1000)
    await desk.clock.advance(asked + 2)
    assert await call == "page"
    assert asked + 1 <= desk.moments[1] <= asked + 2


async def test_g7_floods_use_up_no_retry():
    desk = Desk()
    call = desk.call(HISTORY, *[flood(1)] * 2, *[RetryableError("lost")] * 5, patience=10_000)
    await desk.clock.advance(10_000)
    assert await call == "page"
    assert len(desk.started) == 8


async def test_g7_other_retryable_errors_are_tried_five_times_more_with_no_sleep_after_the_last():
    desk = Desk()
    call = desk.call(Call(1, "users.getMe"), *[RetryableError("lost")] * 9)
    await desk.clock.advance(3.11)
    assert call.done()
    with pytest.raises(RetryableError):
        await call
    assert desk.moments == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1])
    assert desk.clock.sleeping == 0


async def test_g7_what_is_not_retryable_is_raised_at_once():
    desk = Desk()
    with pytest.raises(UserError):
        await desk.governor.call(HISTORY, desk.work(UserError("refused")))
    assert len(desk.started) == 1


async def test_g8_the_third_flood_of_a_method_within_an_hour_adds_300_seconds():
    desk = Desk()
    call = desk.call(HISTORY, *[flood(10)] * 3, patience=10_000)
    await desk.clock.advance(10_000)
    await call
    gaps = [later - earlier for earlier, later in itertools.pairwise(desk.moments)]
    assert [round(gap) for gap in gaps] == [11, 11, 311]


@pytest.mark.parametrize("kind", ["FLOOD_PREMIUM_WAIT", "SLOWMODE_WAIT"])
async def test_g8_premium_waits_and_slow_mode_never_escalate(kind):
    desk = Desk()
    call = desk.call(HISTORY, *[flood(10, kind)] * 5, patience=10_000)
    await desk.clock.advance(10_000)
    await call
    assert desk.moments[-1] < 100


async def test_g9_a_wait_longer_than_the_callers_limit_is_handed_back():
    desk = Desk()
    with pytest.raises(FloodedError) as refused:
        await desk.governor.call(HISTORY, desk.work(flood(3600)), patience=30)
    assert 3601 <= refused.value.seconds <= 3602
    with pytest.raises(NotBeforeError) as later:
        await desk.governor.call(HISTORY, desk.work(), patience=30)
    assert 3601 <= later.value.seconds <= 3602
    assert len(desk.started) == 1


async def test_g9_a_single_attempt_hands_every_flood_back_for_the_outbox_to_retry():
    desk = Desk()
    with pytest.raises(FloodedError) as refused:
        await desk.governor.attempt(HISTORY, desk.work(flood(2)), patience=30)
    assert 3 <= refused.value.seconds <= 4
    with pytest.raises(RetryableError):
        await desk.governor.attempt(SEARCH, desk.work(RetryableError("lost")))
    assert len(desk.started) == 2


async def test_g11_after_a_flood_calls_come_at_a_wider_pace():
    desk = Desk()
    for _ in range(20):
        await asyncio.wait_for(_driven(desk, desk.call(SEARCH, patience=1000)), HANG_SECONDS)
    before = desk.moments[-1] - desk.moments[-2]
    await asyncio.wait_for(_driven(desk, desk.call(SEARCH, flood(1), patience=1000)), HANG_SECONDS)
    for _ in range(5):
        await asyncio.wait_for(_driven(desk, desk.call(SEARCH, patience=1000)), HANG_SECONDS)
    after = desk.moments[-1] - desk.moments[-2]
    assert before == pytest.approx(3, abs=0.1)
    assert after > 5


async def _driven(desk, task):
    while not task.done():
        await desk.clock.advance(0.5)
    return await task


async def test_g17_calls_that_a_person_waits_for_go_before_background_calls_within_the_same_limits():
    desk = Desk()
    background = [desk.call(SEARCH, name=f"background {number}", patience=1000) for number in range(6)]
    await settle()
    urgent = desk.call(SEARCH, name="urgent", urgent=True, patience=1000)
    await desk.clock.advance(60)
    await asyncio.gather(urgent, *background)
    names = [name for _, name in desk.started]
    at_once = [name for moment, name in desk.started if moment == 0]
    assert names[len(at_once)] == "urgent"
    assert [name for name in names if name != "urgent"] == [f"background {number}" for number in range(6)]
    interval = DEFAULT.paces["messages.search"].interval
    assert desk.moments[-1] >= interval * (len(names) - DEFAULT.paces["messages.search"].burst)


async def test_g17_a_chat_that_has_to_wait_does_not_hold_back_calls_for_others():
    desk = Desk()
    desk.store.blocks[1, "messages.getHistory", 5] = (100.0, 99)
    slow = desk.call(Call(1, "messages.getHistory", chat=5), urgent=True, patience=1000)
    await settle()
    assert await desk.governor.call(Call(1, "messages.getHistory", chat=6), desk.work()) == "page"
    await desk.clock.advance(100)
    assert await slow == "page"


async def test_g17_a_background_call_that_others_keep_overtaking_is_handed_back_in_time():
    desk = Desk()
    for _ in range(3):
        await _driven(desk, desk.call(SEARCH))
    patient = desk.call(SEARCH, patience=10)
    others = [desk.call(SEARCH, urgent=True, patience=1000) for _ in range(20)]
    with pytest.raises(NotBeforeError):
        await _driven(desk, patient)
    assert desk.clock.monotonic() < 20
    for other in others:
        await _driven(desk, other)


async def test_a_cancelled_call_leaves_its_place_to_the_next():
    desk = Desk()
    calls = [desk.call(SEARCH, name=number, patience=1000) for number in range(6)]
    await settle()
    next(call for call in calls if not call.done()).cancel()
    await desk.clock.advance(60)
    assert len(desk.started) == 5
    assert all(call.done() for call in calls)
