"""Runner: how many run, what becomes of each item, and how it ends."""

import asyncio
import gc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from list_source import ListSource
from manual_clock import ManualClock, settle

from worker.errors import AccountUnusableError, BusyError, NotBeforeError, RetryableError, UserError
from worker.flow.runner import Runner, Sink


class Workshop:
    """Handlers that end when the test says so, and a record of everything that happened to them."""

    def __init__(self) -> None:
        self.started: list[object] = []
        self.cancelled: list[object] = []
        self.errors: list[tuple[object, str]] = []
        self.timeouts: list[object] = []
        self.live = 0
        self.most = 0
        self.stubborn: set[object] = set()
        self._gates: dict[object, asyncio.Event] = {}
        self._faults: dict[object, Exception] = {}

    def gate(self, item) -> asyncio.Event:
        return self._gates.setdefault(item, asyncio.Event())

    async def finish(self, *items, error: Exception | None = None) -> None:
        for item in items:
            if error is not None:
                self._faults[item] = error
            self.gate(item).set()
        await settle()

    async def handle(self, item) -> None:
        self.started.append(item)
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await self._until_told(item)
        finally:
            self.live -= 1
        if item in self._faults:
            raise self._faults[item]

    async def _until_told(self, item) -> None:
        while True:
            try:
                await self.gate(item).wait()
            except asyncio.CancelledError:
                self.cancelled.append(item)
                if item not in self.stubborn:
                    raise
            else:
                return

    def on_error(self, item, error) -> None:
        self.errors.append((item, str(error)))

    async def on_timeout(self, item) -> None:
        self.timeouts.append(item)


class Bench:
    """A runner on a manual clock, with its source and its workshop."""

    def __init__(self, items=(), *, closed=False, **options) -> None:
        self.source = ListSource(items, closed=closed)
        self.shop = Workshop()
        self.clock = ManualClock()
        options = {
            "limit": 2,
            "handler": self.shop.handle,
            "on_error": self.shop.on_error,
            "on_timeout": self.shop.on_timeout,
            "clock": self.clock,
            "draw": lambda: 0.5,
        } | options
        self.runner = Runner(self.source, **options)

    async def start(self) -> "Bench":
        self.runner.start()
        await settle()
        return self

    async def stop(self, drain: float = 0.0) -> None:
        await asyncio.wait_for(self.runner.stop(drain), 5)


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
        await asyncio.wait_for(runner.run(), 5)
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
    await asyncio.wait_for(runner.run(), 5)
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
    await asyncio.wait_for(asyncio.gather(patient, impatient), 5)
    await bench.stop()
    assert sorted(bench.source.handed_back) == [("a", 0.0), ("b", 0.0)]


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
        await asyncio.wait_for(asyncio.ensure_future(_ended(bench.runner)), 5)
    assert bench.source.handed_back == [("a", 0.0)]
    assert not bench.runner.is_running
    await bench.stop()


async def _ended(runner) -> None:
    await runner


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
    await asyncio.wait_for(runner.run(), 30)
    await settle()
    gc.collect()
    assert sum(ref() is not None for ref in seen) == 0
    assert len(runner._lanes) == 0


async def test_r12_closing_the_source_ends_the_run_once_running_work_is_done():
    bench = await Bench("ab").start()
    bench.source.close()
    await bench.shop.finish("a")
    assert bench.runner.is_running
    await bench.shop.finish("b")
    await asyncio.wait_for(_ended(bench.runner), 5)
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
