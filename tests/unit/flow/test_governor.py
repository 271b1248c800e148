"""Governor: who may call, when, and what is learned, over a store in memory."""

import asyncio
import itertools

import pytest
from manual_clock import ManualClock, settle
from memory_governor_store import MemoryGovernorStore

from worker.domain.calls import Activity, Call
from worker.errors import NotBeforeError, RetryableError, UserError
from worker.flow.flood import read
from worker.flow.governor import FloodedError, Governor
from worker.flow.keeper import Keeper
from worker.flow.limits import DEFAULT
from worker.flow.parts import BlockCache, FileParts

HISTORY = Call(1, "messages.getHistory", chat=5)
SEARCH = Call(1, "messages.search", chat=5)
GET_FILE = Call(1, "upload.getFile", context="set 7")


class Desk:
    """A governor on a manual clock, and calls whose answers the test decides."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryGovernorStore(self.clock)
        self.governor = Governor(self.store, clock=self.clock, draw=lambda: 0.5)
        self.blocks = BlockCache(self.store, self.clock)
        self.keeper = Keeper(self.store, self.governor.activity, self.blocks, self.clock)
        self.started: list[tuple[float, object]] = []

    def work(self, *answers, name=None):
        pending = list(answers)

        async def run():
            self.started.append((self.clock.monotonic(), name))
            answer = pending.pop(0) if pending else "page"
            if isinstance(answer, Exception):
                raise answer
            return answer

        return run

    def call(self, call=HISTORY, *answers, name=None, **options):
        return asyncio.create_task(self.governor.call(call, self.work(*answers, name=name), **options))

    def parts(self, call=GET_FILE, narrow=lambda: None):
        return FileParts(self.governor, self.blocks, call, self.clock, narrow=narrow, draw=lambda: 0.5)

    @property
    def moments(self) -> list[float]:
        return [moment for moment, _ in self.started]


def flood(seconds, kind="FLOOD_WAIT"):
    return NotBeforeError(f"messages.getHistory: 420 {kind}_{seconds}", seconds=seconds)


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
        await asyncio.wait_for(_driven(desk, desk.call(SEARCH, patience=1000)), 5)
    before = desk.moments[-1] - desk.moments[-2]
    await asyncio.wait_for(_driven(desk, desk.call(SEARCH, flood(1), patience=1000)), 5)
    for _ in range(5):
        await asyncio.wait_for(_driven(desk, desk.call(SEARCH, patience=1000)), 5)
    after = desk.moments[-1] - desk.moments[-2]
    assert before == pytest.approx(3, abs=0.1)
    assert after > 5


async def _driven(desk, task):
    while not task.done():
        await desk.clock.advance(0.5)
    return await task


async def test_g15_a_part_costs_no_round_trip():
    desk = Desk()
    await desk.keeper.run_once()
    trips = desk.store.trips
    async with desk.parts() as parts:
        for _ in range(1000):
            await parts.permit()
            parts.done()
    assert desk.store.trips == trips
    assert desk.store.lines == []
    await desk.keeper.run_once()
    (line,) = desk.store.lines
    assert (line.calls, line.ok, line.context) == (1000, True, "set 7")
    assert [count.calls for count in desk.store.counts] == [1000]


async def test_g15_counts_are_written_at_least_once_a_second():
    desk = Desk()
    keeping = asyncio.create_task(desk.keeper.run())
    await settle()
    parts = desk.parts()
    parts.done()
    await desk.clock.advance(1.0)
    assert [count.calls for count in desk.store.counts] == [1]
    parts.done()
    keeping.cancel()
    await settle()
    assert [count.calls for count in desk.store.counts] == [1, 1]  # what was left is written at the end


async def test_g15_failures_and_floods_are_written_at_once():
    desk = Desk()
    with pytest.raises(UserError):
        await desk.governor.call(HISTORY, desk.work(UserError("refused")))
    assert [line.error for line in desk.store.lines] == ["UserError: refused"]
    with pytest.raises(FloodedError):
        await desk.governor.attempt(HISTORY, desk.work(flood(100)))
    assert [told.name for _, _, told in desk.store.floods] == ["FLOOD_WAIT_100"]


async def test_g15_a_failed_part_is_a_line_of_its_own():
    desk = Desk()
    await desk.keeper.run_once()
    with pytest.raises(UserError):
        async with desk.parts() as parts:
            parts.done()
            await parts.refused(UserError("FILE_ID_INVALID"))
    await desk.keeper.run_once()
    assert [(line.ok, line.calls) for line in desk.store.lines] == [(False, 1), (False, 1)]


async def test_g15_a_block_met_elsewhere_stops_parts_after_a_notification():
    desk = Desk()
    keeping = asyncio.create_task(desk.keeper.run())
    await settle()
    parts = desk.parts()
    await parts.permit()
    desk.store.blocks[1, "upload.getFile", 0] = (desk.clock.monotonic() + 60, 59)
    desk.keeper.notify()
    await settle()
    permitted = asyncio.create_task(parts.permit())
    await desk.clock.advance(59)
    assert not permitted.done()
    await desk.clock.advance(1)
    assert permitted.done()
    keeping.cancel()


async def test_g8_a_premium_wait_delays_only_the_refused_part_and_narrows_the_depth():
    desk, narrowed = Desk(), []
    await desk.keeper.run_once()
    parts = desk.parts(narrow=lambda: narrowed.append(True))
    refused = asyncio.create_task(parts.refused(flood(5, "FLOOD_PREMIUM_WAIT")))
    await settle()
    await asyncio.wait_for(parts.permit(), 1)  # the others go on
    await desk.clock.advance(5.9)
    assert not refused.done()
    await desk.clock.advance(1)
    assert refused.done()
    assert narrowed == [True]
    assert desk.store.blocks == {}


async def test_g7_a_part_is_tried_again_after_a_lost_connection_and_after_a_wait_without_using_up_a_retry():
    desk = Desk()
    keeping = asyncio.create_task(desk.keeper.run())
    await settle()
    work = desk.work(*[RetryableError("lost")] * 4, flood(3, "FLOOD_PREMIUM_WAIT"), RetryableError("lost"))
    part = asyncio.create_task(desk.parts().part(work))
    await desk.clock.advance(10)
    assert await part == "page"
    part = asyncio.create_task(desk.parts().part(desk.work(*[RetryableError("lost")] * 6)))
    await desk.clock.advance(10)
    with pytest.raises(RetryableError):
        await part
    keeping.cancel()


async def test_g16_the_keeper_outlives_whatever_goes_wrong_in_one_round():
    desk = Desk()
    active_blocks = desk.store.active_blocks

    async def broken():
        raise ZeroDivisionError

    desk.store.active_blocks = broken
    keeping = asyncio.create_task(desk.keeper.run())
    await desk.clock.advance(10)
    assert not desk.blocks.free(1, "upload.getFile")
    desk.store.active_blocks = active_blocks
    await desk.clock.advance(1)
    assert desk.blocks.free(1, "upload.getFile")
    keeping.cancel()


async def test_g15_a_record_that_cannot_be_written_hides_no_error_of_the_call():
    desk = Desk()

    async def broken(rows, counts):
        raise ZeroDivisionError

    desk.governor.activity._write = broken
    with pytest.raises(UserError, match="refused"):
        await desk.governor.call(HISTORY, desk.work(UserError("refused")))


async def test_g4_a_flood_on_parts_stops_the_parts_of_that_account_and_method_at_once():
    desk = Desk()
    keeping = asyncio.create_task(desk.keeper.run())
    await settle()
    mine, other = desk.parts(), desk.parts(Call(2, "upload.getFile"))
    refused = asyncio.create_task(mine.refused(flood(20)))
    await settle()
    assert not desk.blocks.free(1, "upload.getFile")
    await asyncio.wait_for(other.permit(), 1)
    await desk.clock.advance(21)
    assert not refused.done()
    await desk.clock.advance(1)
    assert refused.done()
    keeping.cancel()


async def test_g16_with_the_database_gone_calls_stop_and_resume_by_themselves():
    desk = Desk()
    desk.store.away = True
    call = desk.call(HISTORY, patience=60)
    await desk.clock.advance(20)
    assert desk.started == []
    desk.store.away = False
    await desk.clock.advance(1)
    assert await call == "page"


async def test_g16_with_the_database_gone_parts_stop_within_a_bounded_time_and_resume_by_themselves():
    desk = Desk()
    keeping = asyncio.create_task(desk.keeper.run())
    await settle()
    parts = desk.parts()
    desk.store.away = True
    await parts.permit()
    await desk.clock.advance(3)
    permitted = asyncio.create_task(parts.permit())
    await desk.clock.advance(60)
    assert not permitted.done()
    desk.store.away = False
    await desk.clock.advance(1)
    assert permitted.done()
    keeping.cancel()


async def test_g16_a_flood_met_while_the_database_is_gone_is_made_good_before_the_next_call():
    desk = Desk()

    async def gone_meanwhile():
        desk.started.append((desk.clock.monotonic(), None))
        if len(desk.started) == 1:
            desk.store.away = True
            raise flood(30)
        return "page"

    call = asyncio.create_task(desk.governor.call(HISTORY, gone_meanwhile, patience=1000))
    await desk.clock.advance(10)
    desk.store.away = False
    await desk.clock.advance(90)
    assert await call == "page"
    assert 31 <= desk.moments[1] <= 33
    assert len(desk.store.floods) == 1


async def test_g16_the_record_kept_during_an_outage_is_bounded_and_written_afterwards():
    desk = Desk()
    desk.store.away = True
    for number in range(20_000):
        desk.governor.activity.count(1, "upload.getFile")
        if number % 2:
            desk.governor.activity.add(_line(number))
    await desk.keeper.run_once()
    assert len(desk.governor.activity) <= 10_001
    desk.store.away = False
    await desk.keeper.run_once()
    assert desk.store.lines[-1].context == "19999"
    assert sum(count.calls for count in desk.store.counts) == 20_000


def _line(number):
    return Activity(1, "upload.getFile", True, 0.1, context=str(number))


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


async def test_g10_cleaning_up_runs_by_itself():
    desk = Desk()
    keeper = Keeper(desk.store, desk.governor.activity, desk.blocks, desk.clock, interval=300)
    keeping = asyncio.create_task(keeper.run())
    await settle()
    assert desk.store.cleanups == 1
    await desk.clock.advance(3601)
    assert desk.store.cleanups == 2
    keeping.cancel()
