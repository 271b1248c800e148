"""Runner: how it stops, fails and ends."""

import asyncio

import pytest
from hang_guard import HANG_SECONDS
from list_source import ListSource
from manual_clock import settle
from runner_bench import Bench, Workshop

from worker.errors import AccountUnusableError, NotBeforeError, RetryableError, UserError
from worker.flow.runner import Runner


async def test_r3_stop_lets_running_work_finish_within_the_drain_time():
    bench = await Bench("ab").start()
    stopping = asyncio.create_task(bench.stop(drain=30))
    await bench.clock.advance(29)
    assert not stopping.done()
    await bench.shop.finish("a", "b")
    await stopping
    assert bench.source.acknowledged == ["a", "b"]
    assert bench.source.handed_back == []


async def test_r3_stop_cancels_the_rest_and_hands_it_back_and_returns_only_then():
    bench = await Bench("ab").start()
    bench.shop.stubborn = {"b"}
    stopping = asyncio.create_task(bench.stop(drain=30))
    await bench.shop.finish("a")
    await bench.clock.advance(30)
    assert bench.shop.cancelled == ["b"]
    assert not stopping.done()  # b is still cleaning up
    await bench.shop.finish("b")
    await stopping
    assert bench.source.acknowledged == ["a"]
    assert bench.source.handed_back == [("b", 0.0)]
    assert bench.runner.size() == 0


async def test_r3_items_that_wait_for_their_lane_are_handed_back_at_once():
    bench = await Bench("ab", keys=lambda _: ("same",)).start()
    stopping = asyncio.create_task(bench.stop(drain=30))
    await settle()
    assert bench.source.handed_back == [("b", 0.0)]
    await bench.shop.finish("a")
    await stopping
    assert bench.shop.started == ["a"]
    assert bench.source.acknowledged == ["a"]


async def test_r3_items_that_arrived_a_moment_before_the_stop_are_not_lost():
    class StoppedWhileGiving(ListSource):
        async def fetch(self, limit):
            stops.append(asyncio.create_task(runner.stop()))  # runs before the items' own tasks begin
            return await super().fetch(limit)

    stops, shop, source = [], Workshop(), StoppedWhileGiving("ab")
    runner = Runner(source, shop.handle, limit=2, on_error=shop.on_error, on_timeout=shop.on_timeout)
    await asyncio.wait_for(runner.run(), HANG_SECONDS)
    await asyncio.gather(*stops)
    assert shop.started == []
    assert sorted(source.handed_back) == [("a", 0.0), ("b", 0.0)]


async def test_r3_cancelling_the_run_leaves_nothing_running_and_hands_everything_back():
    bench = Bench("ab")
    run = asyncio.create_task(bench.runner.run())
    await settle()
    bench.shop.stubborn = {"b"}
    run.cancel()
    await settle()
    run.cancel()  # impatient
    await settle()
    assert not run.done()
    await bench.shop.finish("b")
    with pytest.raises(asyncio.CancelledError):
        await run
    assert sorted(bench.source.handed_back) == [("a", 0.0), ("b", 0.0)]
    assert not bench.runner.is_running


async def test_r4_stop_interrupts_fetching_at_once():
    bench = await Bench().start()
    assert bench.source.fetching
    await bench.stop(drain=60)
    assert not bench.source.fetching
    assert bench.clock.monotonic() == 0


@pytest.mark.parametrize("failure", [RetryableError("gone"), NotBeforeError("paced", seconds=60)])
async def test_r4_stop_interrupts_back_off_and_pacing_at_once(failure):
    bench = Bench()
    bench.source.fail(failure)
    await bench.start()
    assert bench.clock.sleeping == 1
    await bench.stop(drain=60)
    assert not bench.runner.is_running


async def test_r4_stop_is_safe_before_start():
    bench = Bench("a")
    await bench.stop()
    await bench.start()
    await bench.runner
    assert bench.shop.started == []
    assert not bench.runner.is_running


async def test_r4_stop_is_safe_twice_and_from_several_tasks():
    bench = await Bench("ab").start()
    patient = asyncio.create_task(bench.stop(drain=60))
    impatient = asyncio.create_task(bench.stop(drain=5))
    await bench.clock.advance(5)
    await asyncio.wait_for(asyncio.gather(patient, impatient), HANG_SECONDS)
    await bench.stop()
    assert sorted(bench.source.handed_back) == [("a", 0.0), ("b", 0.0)]


async def test_r6_source_failures_back_off_doubling_capped_and_reset_on_success():
    bench = Bench(limit=1)
    bench.source.fail(*[RetryableError("gone")] * 12)
    await bench.start()
    for delay in [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]:
        asked = len(bench.source.asked)
        await bench.clock.advance(delay - 0.01)
        assert len(bench.source.asked) == asked
        await bench.clock.advance(0.01 + 1e-9)
        assert len(bench.source.asked) == asked + 1
    bench.source.put("a")
    await bench.clock.advance(30)
    await bench.shop.finish("a")
    asked = len(bench.source.asked)
    bench.source.fail(RetryableError("gone again"))
    await settle()
    await bench.clock.advance(0.1)
    assert len(bench.source.asked) == asked + 1
    await bench.stop()


async def test_r6_a_fatal_source_failure_ends_the_run_by_raising():
    bench = await Bench("a").start()
    bench.source.fail(AccountUnusableError("authorisation lost"))
    with pytest.raises(AccountUnusableError):
        await asyncio.wait_for(asyncio.ensure_future(_ended(bench.runner)), HANG_SECONDS)
    assert bench.source.handed_back == [("a", 0.0)]
    assert not bench.runner.is_running
    await bench.stop()


async def _ended(runner) -> None:
    await runner


async def test_r12_closing_the_source_ends_the_run_once_running_work_is_done():
    bench = await Bench("ab").start()
    bench.source.close()
    await bench.shop.finish("a")
    assert bench.runner.is_running
    await bench.shop.finish("b")
    await asyncio.wait_for(_ended(bench.runner), HANG_SECONDS)
    assert not bench.runner.is_running
    assert bench.source.acknowledged == ["a", "b"]


async def test_r12_who_awaits_the_end_can_be_cancelled_without_stopping_the_run():
    bench = await Bench("a").start()
    waiting = asyncio.create_task(_ended(bench.runner))
    await settle()
    waiting.cancel()
    await settle()
    assert bench.runner.is_running
    await bench.stop()


async def test_r12_a_runner_runs_once_and_must_be_started_to_be_awaited():
    bench = Bench()
    with pytest.raises(RuntimeError):
        await bench.runner
    assert not bench.runner.is_running
    await bench.start()
    with pytest.raises(RuntimeError):
        await bench.runner.run()
    await bench.stop()
    with pytest.raises(UserError):
        Bench(limit=0)
