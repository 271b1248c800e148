"""Runner: how many run, and what becomes of each item."""

import asyncio
import gc
import weakref

import pytest
from hang_guard import HANG_SECONDS
from hypothesis import given, settings
from hypothesis import strategies as st
from list_source import ListSource
from manual_clock import ManualClock, settle
from runner_bench import Bench, Workshop

from worker.errors import BusyError, NotBeforeError, RetryableError
from worker.flow.runner import Runner, Sink


@settings(max_examples=50, deadline=None)
@given(
    limit=st.integers(1, 4),
    sink=st.sampled_from(Sink),
    steps=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    overlap=st.integers(1, 5),
)
def test_r1_never_more_live_handlers_than_the_limit(limit, sink, steps, overlap):
    """For every sink, whatever the handlers' lengths and keys, first batch included; and all are handled."""

    async def scenario() -> None:
        live, most, source = 0, 0, ListSource(enumerate(steps), closed=True)

        async def handle(item):
            nonlocal live, most
            live += 1
            most = max(most, live)
            for _ in range(item[1]):
                await asyncio.sleep(0)
            live -= 1

        runner = Runner(
            source,
            handle,
            limit=limit,
            sink=sink,
            keys=lambda item: (item[0] % overlap,),
            on_error=lambda item, error: pytest.fail(str(error)),
            on_timeout=lambda item: pytest.fail("timeout"),
        )
        await asyncio.wait_for(runner.run(), HANG_SECONDS)
        assert most <= (1 if sink is Sink.SEQUENTIAL else limit)
        assert sorted(source.acknowledged) == list(enumerate(steps))

    asyncio.run(scenario())


async def test_r1_a_handler_that_times_out_is_cancelled_and_holds_its_slot_until_it_has_ended():
    bench = await Bench("abc", limit=2, timeout=10).start()
    bench.shop.stubborn = {"a", "b"}
    await bench.clock.advance(10)
    assert bench.shop.cancelled == ["a", "b"]
    assert bench.runner.size() == 2
    assert "c" not in bench.shop.started
    await bench.shop.finish("a")
    assert bench.shop.started == ["a", "b", "c"]
    assert bench.shop.timeouts == ["a"]  # it returned after all, but was cut short: not acknowledged
    assert bench.source.acknowledged == []
    bench.shop.stubborn = set()
    await bench.shop.finish("b", "c")
    await bench.stop()


async def test_r1_the_time_spent_waiting_for_a_lane_is_no_part_of_the_timeout():
    bench = await Bench("ab", timeout=10, keys=lambda _: ("same",)).start()
    await bench.clock.advance(8)
    await bench.shop.finish("a")
    await bench.clock.advance(8)
    assert bench.shop.timeouts == []
    await bench.shop.finish("b")
    assert bench.source.acknowledged == ["a", "b"]
    await bench.stop()


async def test_r1_a_source_that_gives_too_much_gets_the_surplus_back():
    class Generous(ListSource):
        async def fetch(self, limit):
            return await super().fetch(limit + 1)

    shop = Workshop()
    source = Generous("abcd")
    runner = Runner(source, shop.handle, limit=2, on_error=shop.on_error, on_timeout=shop.on_timeout)
    runner.start()
    await settle()
    assert shop.started == ["a", "b"]
    assert source.handed_back == [("c", 0.0)]
    await runner.stop()


async def test_r2_the_source_is_asked_for_at_most_the_free_capacity():
    bench = await Bench("ab", limit=3).start()
    assert bench.source.asked == [3, 1]
    bench.source.put("c")
    await settle()
    assert bench.source.asked == [3, 1]  # full: asked for nothing
    assert not bench.source.fetching
    await bench.shop.finish("a", "b")
    assert bench.source.asked[2:] == [1] or bench.source.asked[2:] == [2]
    await bench.stop()


async def test_r2_an_empty_answer_is_followed_by_a_pause():
    class Empty(ListSource):
        async def fetch(self, limit):
            self.asked.append(limit)
            return []

    clock = ManualClock()
    source, shop = Empty(), Workshop()
    runner = Runner(
        source, shop.handle, limit=1, idle=2, clock=clock, on_error=shop.on_error, on_timeout=shop.on_timeout
    )
    runner.start()
    await clock.advance(5)
    assert len(source.asked) == 3
    await runner.stop()


async def test_r2_a_batch_is_finished_before_the_next_is_fetched():
    bench = await Bench("abcd", sink=Sink.BATCH).start()
    await bench.shop.finish("a")
    assert bench.shop.started == ["a", "b"]
    await bench.shop.finish("b")
    assert bench.shop.started == ["a", "b", "c", "d"]
    assert bench.source.asked == [2, 2]
    await bench.stop()


async def test_r2_a_sequential_sink_takes_one_after_the_other():
    bench = await Bench("ab", limit=5, sink=Sink.SEQUENTIAL).start()
    assert bench.shop.started == ["a"]
    await bench.shop.finish("a")
    assert bench.shop.started == ["a", "b"]
    assert bench.source.asked == [1, 1]
    await bench.stop()


async def test_r5_an_item_is_acknowledged_only_after_its_handler_succeeded():
    bench = await Bench("ab").start()
    assert bench.source.acknowledged == []
    await bench.shop.finish("a")
    await bench.shop.finish("b", error=ValueError("broken"))
    assert bench.source.acknowledged == ["a"]
    assert bench.shop.errors == [("b", "broken")]
    await bench.stop()


async def test_r5_an_item_whose_acknowledgement_fails_is_handed_back():
    bench = await Bench("a").start()
    bench.source.refuse_settling = RetryableError("database gone")
    await bench.shop.finish("a")
    assert bench.source.handed_back == [("a", 0.0)]
    await bench.stop()


@pytest.mark.parametrize("place", ["handler", "keys"])
async def test_r7_a_synchronous_exception_leaks_no_slot_and_stops_nothing_else(place):
    def explode(item):
        if item in "ac":
            raise ValueError(item)
        return shop.handle(item) if place == "handler" else ()

    shop = Workshop()
    options = {"handler": explode} if place == "handler" else {"keys": explode, "handler": shop.handle}
    bench = await Bench("abcd", limit=1, **options).start()
    await shop.finish("b", "d")
    assert bench.shop.errors == [("a", "a"), ("c", "c")]
    assert bench.source.acknowledged == ["b", "d"]
    assert bench.runner.size() == 0
    await bench.stop()


@pytest.mark.parametrize("synchronous", [True, False])
async def test_r7_an_exception_of_an_error_handler_hands_the_item_back_and_stops_nothing_else(synchronous):
    def refuse(item, error):
        raise RuntimeError("the error handler is broken")

    async def refuse_later(item, error):
        refuse(item, error)

    bench = await Bench("abc", limit=1, on_error=refuse if synchronous else refuse_later).start()
    await bench.shop.finish("a", error=ValueError("broken"))
    await bench.shop.finish("b", "c")
    assert bench.source.handed_back == [("a", 0.0)]
    assert bench.source.acknowledged == ["b", "c"]
    await bench.stop()


async def test_r7_a_handler_that_cancels_itself_is_an_error_like_any_other():
    async def give_up(item):
        raise asyncio.CancelledError

    bench = await Bench("ab", limit=1, handler=give_up).start()
    assert [item for item, _ in bench.shop.errors] == ["a", "b"]
    assert bench.runner.size() == 0
    await bench.stop()


async def test_r8_size_equals_the_length_of_the_snapshot_in_order_of_arrival():
    bench = await Bench("abcde", limit=4).start()
    assert bench.runner.snapshot() == ("a", "b", "c", "d")
    await bench.shop.finish("b")
    assert bench.runner.snapshot() == ("a", "c", "d", "e")
    assert bench.runner.size() == len(bench.runner.snapshot())
    await bench.stop()
    assert bench.runner.size() == len(bench.runner.snapshot()) == 0


@pytest.mark.parametrize("error", [NotBeforeError("flood", seconds=420), BusyError("hash", seconds=420)])
async def test_r9_not_before_reschedules_an_item_and_never_fails_it(error):
    bench = await Bench("a").start()
    await bench.shop.finish("a", error=error)
    assert bench.source.handed_back == [("a", 420)]
    assert bench.shop.errors == []
    await bench.stop()


async def test_r10_handlers_whose_keys_overlap_run_in_order_of_arrival_and_others_concurrently():
    keys = {"a1": "A", "b": "B", "ab": "AB", "a2": "A", "c": "C"}
    bench = await Bench(keys, limit=5, keys=keys.__getitem__).start()
    assert bench.shop.started == ["a1", "b", "c"]
    await bench.shop.finish("a1")
    assert bench.shop.started == ["a1", "b", "c"]
    await bench.shop.finish("b")
    assert bench.shop.started == ["a1", "b", "c", "ab"]
    await bench.shop.finish("ab")
    assert bench.shop.started == ["a1", "b", "c", "ab", "a2"]
    await bench.stop()


async def test_r10_an_item_is_settled_before_the_next_with_its_key_begins():
    told = asyncio.Event()

    async def slowly(item, error):
        await told.wait()

    bench = await Bench("ab", keys=lambda _: ("same",), on_error=slowly).start()
    await bench.shop.finish("a", error=ValueError("broken"))
    assert bench.shop.started == ["a"]
    told.set()
    await settle()
    assert bench.shop.started == ["a", "b"]
    await bench.stop()


async def test_r11_memory_does_not_grow_with_the_number_of_items_processed():
    class Item:
        pass

    seen: list[weakref.ref[Item]] = []

    class Endless(ListSource):
        async def fetch(self, limit):
            if len(seen) >= 2000:
                return await super().fetch(limit)
            batch = [Item() for _ in range(limit)]
            seen.extend(weakref.ref(item) for item in batch)
            return batch

        async def acknowledge(self, item):
            pass

    async def handle(item):
        await asyncio.sleep(0)

    source = Endless(closed=True)
    runner = Runner(
        source, handle, limit=8, keys=lambda item: (id(item),), on_error=print, on_timeout=print, timeout=60
    )
    await asyncio.wait_for(runner.run(), HANG_SECONDS)
    await settle()
    gc.collect()
    assert sum(ref() is not None for ref in seen) == 0
    assert len(runner._lanes) == 0
