"""Governor: file parts, the record of calls, and a database that is gone."""

import asyncio

import pytest
from governor_desk import HISTORY, Desk, flood
from hang_guard import HANG_SECONDS
from manual_clock import settle

from worker.domain.calls import Activity, Call
from worker.errors import NotBeforeError, RetryableError, UserError
from worker.flow.flood import read
from worker.flow.governor import FloodedError


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
    await asyncio.wait_for(parts.permit(), HANG_SECONDS)  # the others go on
    await desk.clock.advance(5.9)
    assert not refused.done()
    await desk.clock.advance(1)
    assert refused.done()
    assert narrowed == [True]
    assert desk.store.blocks == {}


async def test_g9_a_premium_wait_beyond_the_patience_is_handed_back():
    """A claim that is held for an hour keeps the set from everybody else."""
    desk, narrowed = Desk(), []
    await desk.keeper.run_once()
    parts = desk.parts(narrow=lambda: narrowed.append(True), patience=30)
    refused = asyncio.create_task(parts.part(desk.work(flood(3600, "FLOOD_PREMIUM_WAIT"))))
    await settle()
    assert refused.done(), "it sleeps"
    with pytest.raises(NotBeforeError) as told:
        await refused
    assert 3601 <= told.value.seconds <= 3602
    assert narrowed == [True]
    assert desk.store.blocks == {}, "other parts may go on"


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
    await asyncio.wait_for(other.permit(), HANG_SECONDS)
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


async def test_g16_a_flood_whose_caller_was_cancelled_while_it_was_being_recorded_is_recorded_all_the_same():
    desk = Desk()
    record, asked = desk.store.record_flood, asyncio.Event()

    async def slow(report):
        asked.set()
        await asyncio.Event().wait()

    desk.store.record_flood = slow
    call = desk.call(HISTORY, flood(600))
    await asked.wait()
    call.cancel()
    await settle()
    desk.store.record_flood = record
    await desk.keeper.run_once()
    assert len(desk.store.floods) == 1
    assert desk.store.blocks[1, HISTORY.method, 0][0] > 600


async def test_g5_no_call_slips_through_while_a_flood_is_on_its_way_to_the_store():
    desk, gate = Desk(), asyncio.Event()
    record = desk.store.record_flood

    async def slowly(report):
        await gate.wait()
        return await record(report)

    desk.store.record_flood = slowly
    refused = desk.call(HISTORY, flood(600), patience=10_000)
    await settle()
    following = desk.call(Call(1, HISTORY.method, chat=6), patience=10_000)
    await settle()
    gate.set()
    await desk.clock.advance(600)
    assert len(desk.started) == 1
    refused.cancel()
    following.cancel()


async def test_g16_floods_that_several_calls_make_good_at_once_are_each_recorded():
    desk = Desk()
    await desk.governor.call(HISTORY, desk.work())
    desk.store.away = True
    for method in ("a", "b", "c"):
        await desk.governor.flooded(Call(1, method), read("FLOOD_WAIT_600"))
    desk.store.away = False
    record = desk.store.record_flood

    async def slowly(report):
        await asyncio.sleep(0)
        return await record(report)

    desk.store.record_flood = slowly
    await asyncio.gather(*(desk.governor.record_floods() for _ in range(3)))
    assert sorted(call.method for _, call, _ in desk.store.floods) == ["a", "b", "c"]


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
