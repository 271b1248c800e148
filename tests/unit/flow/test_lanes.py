"""Lanes: who enters, in which order, and what is left behind."""

import asyncio
import contextlib
import random

import pytest
from hang_guard import HANG_SECONDS
from hypothesis import given, settings
from hypothesis import strategies as st
from manual_clock import settle

from worker.errors import BusyError
from worker.flow.lanes import Lanes, ReentryError


class Visitor:
    """A task that holds some keys until it is told to leave."""

    def __init__(self, lanes: Lanes, log: list[str], name: str, *keys: object) -> None:
        self.entered = asyncio.Event()
        self._leave = asyncio.Event()
        self._fail = False
        self.task = asyncio.create_task(self._visit(lanes, log, name, keys))

    async def _visit(self, lanes, log, name, keys):
        async with lanes.hold(*keys):
            log.append(name)
            self.entered.set()
            await self._leave.wait()
            if self._fail:
                raise ValueError(name)

    async def leave(self, *, fail: bool = False) -> None:
        self._fail = fail
        self._leave.set()
        with contextlib.suppress(ValueError):
            await self.task
        await settle()

    async def cancel(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        await settle()


async def visit(lanes, log, name, *keys) -> Visitor:
    visitor = Visitor(lanes, log, name, *keys)
    await settle()
    return visitor


@settings(max_examples=60, deadline=None)
@given(
    wishes=st.lists(st.sets(st.integers(0, 4), max_size=3), min_size=1, max_size=25),
    seed=st.integers(0, 2**16),
)
def test_l1_no_two_holders_share_a_key(wishes, seed):
    """Whatever the key sets, errors and cancellations: one holder per key, all enter, nothing is left."""

    async def scenario() -> None:
        lanes, dice, held = Lanes(), random.Random(seed), set()

        async def work(keys):
            async with lanes.hold(*keys):
                assert not held & keys
                held.update(keys)
                try:
                    for _ in range(dice.randrange(4)):
                        await asyncio.sleep(0)
                    if dice.random() < 0.2:
                        raise ValueError
                finally:
                    held.difference_update(keys)

        tasks = [asyncio.create_task(work(keys)) for keys in wishes]
        for task in dice.sample(tasks, len(tasks) // 4):
            await asyncio.sleep(0)
            task.cancel()
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), HANG_SECONDS)
        assert not [result for result in results if isinstance(result, AssertionError)]
        assert len(lanes) == 0

    asyncio.run(scenario())


async def test_l2_waiters_that_share_a_key_enter_in_order_of_arrival():
    lanes, log = Lanes(), []
    visitors = [await visit(lanes, log, name, "chat") for name in "abcd"]
    for visitor in visitors:
        await visitor.leave()
    assert log == ["a", "b", "c", "d"]


async def test_l2_a_try_does_not_overtake_a_waiter():
    lanes, log = Lanes(), []
    first = await visit(lanes, log, "first", "chat")
    second = await visit(lanes, log, "second", "chat")
    await first.leave()
    with pytest.raises(BusyError):
        lanes.try_hold("chat")
    await second.leave()


async def test_l3_disjoint_keys_never_wait_on_each_other():
    lanes, log = Lanes(), []
    one = await visit(lanes, log, "one", "a", "b")
    other = await visit(lanes, log, "other", "c")
    assert one.entered.is_set()
    assert other.entered.is_set()
    await one.leave()
    await other.leave()


@pytest.mark.parametrize("way_out", ["error", "cancellation"])
async def test_l4_the_next_in_line_enters_after_a_holders(way_out):
    lanes, log = Lanes(), []
    holder = await visit(lanes, log, "holder", "a", "b")
    following = await visit(lanes, log, "next", "b")
    third = await visit(lanes, log, "third", "b")
    await (holder.leave(fail=True) if way_out == "error" else holder.cancel())
    assert following.entered.is_set()
    assert not third.entered.is_set()
    await following.leave()
    await third.leave()
    assert len(lanes) == 0


async def test_l4_a_cancelled_waiter_lets_those_behind_it_pass():
    lanes, log = Lanes(), []
    holder = await visit(lanes, log, "holder", "a")
    waiter = await visit(lanes, log, "waiter", "a", "b")
    behind = await visit(lanes, log, "behind", "b")
    await waiter.cancel()
    assert behind.entered.is_set()
    await holder.leave()
    await behind.leave()
    assert len(lanes) == 0


async def test_l4_a_waiter_cancelled_in_the_moment_it_is_let_in_passes_its_turn_on():
    lanes, log = Lanes(), []
    holder = lanes.try_hold("a")
    waiter = await visit(lanes, log, "waiter", "a")
    behind = Visitor(lanes, log, "behind", "a")
    await settle()
    holder.release()  # the waiter's turn has come, but its task has not run yet
    await waiter.cancel()
    assert log == ["behind"]
    await behind.leave()
    assert len(lanes) == 0


async def test_l4_a_hold_is_released_only_once():
    lanes, log = Lanes(), []
    with lanes.try_hold("a") as hold:
        second = await visit(lanes, log, "second", "a")
        third = await visit(lanes, log, "third", "a")
        hold.release()
    await settle()
    assert second.entered.is_set()
    assert not third.entered.is_set()
    await second.leave()
    await third.leave()


async def test_l5_with_no_holder_and_no_waiter_the_map_is_empty():
    lanes = Lanes()
    for chat in range(1000):
        async with lanes.hold(("account", chat), chat):
            assert len(lanes) == 2
    with lanes.try_hold("hash"):
        assert lanes.busy("hash")
    assert len(lanes) == 0


async def test_l6_several_keys_are_taken_in_one_step_so_opposite_orders_do_not_deadlock():
    lanes, done = Lanes(), []

    async def work(name, *keys):
        async with lanes.hold(*keys):
            await asyncio.sleep(0)
            done.append(name)

    await asyncio.wait_for(
        asyncio.gather(work(1, "a", "b"), work(2, "b", "a"), work(3, "a", "b")), HANG_SECONDS
    )
    assert done == [1, 2, 3]


@pytest.mark.parametrize(
    "keys", [(), (None,), ("", None), ("a", "a"), ("a", None, "a", ""), ((), frozenset())]
)
async def test_l6_duplicate_empty_and_none_keys_are_harmless(keys):
    lanes = Lanes()
    async with lanes.hold(*keys):
        assert len(lanes) == len({key for key in keys if key})
    with lanes.try_hold(*keys):
        pass
    assert len(lanes) == 0


async def test_l6_none_keys_never_make_two_tasks_wait():
    lanes, log = Lanes(), []
    one = await visit(lanes, log, "one", None, "")
    two = await visit(lanes, log, "two", None, "")
    assert log == ["one", "two"]
    await one.leave()
    await two.leave()


async def test_l6_zero_is_a_key_like_any_other():
    lanes = Lanes()
    with lanes.try_hold(0):
        assert lanes.busy(0)


async def test_a_held_hash_is_named_by_its_first_digits_and_never_as_raw_bytes():
    lanes = Lanes()
    async with lanes.hold(("copies", 1, bytes(range(32)))):
        with pytest.raises(ReentryError, match=r"already holds copies 1 000102030405…$"):
            lanes.try_hold(("copies", 1, bytes(range(32))))


async def test_l6_asking_again_for_a_held_key_in_the_same_task_raises_at_once():
    lanes = Lanes()
    async with lanes.hold("a", "b"):
        with pytest.raises(ReentryError):
            async with lanes.hold("c", "b"):
                pytest.fail("entered its own lane")
        with pytest.raises(ReentryError):
            lanes.try_hold("a")
        assert len(lanes) == 2
    assert len(lanes) == 0


async def test_l7_a_task_on_two_keys_waits_for_the_last_on_each_and_later_ones_wait_for_it():
    lanes, log = Lanes(), []
    on_a = await visit(lanes, log, "a", "a")
    on_b = await visit(lanes, log, "b", "b")
    on_both = await visit(lanes, log, "both", "a", "b")
    later_a = await visit(lanes, log, "later a", "a")
    later_b = await visit(lanes, log, "later b", "b")
    await on_a.leave()
    assert log == ["a", "b"]  # b is still held; neither "both" nor "later a" may enter
    await on_b.leave()
    assert log == ["a", "b", "both"]
    await on_both.leave()
    assert sorted(log[3:]) == ["later a", "later b"]
    await later_a.leave()
    await later_b.leave()


async def test_try_hold_answers_at_once_and_says_when_to_look_again():
    lanes = Lanes()
    held = asyncio.Event()
    done = asyncio.Event()

    async def holder():
        with lanes.try_hold("hash"):
            held.set()
            await done.wait()

    task = asyncio.create_task(holder())
    await held.wait()
    with pytest.raises(BusyError) as refused:
        lanes.try_hold("other", "hash", retry_in=30, busy="somebody publishes it")
    assert refused.value.seconds == 30
    assert refused.value.what == "somebody publishes it"
    with pytest.raises(BusyError) as refused:
        lanes.try_hold("hash")
    assert "hash" not in str(refused.value), "a key may be raw bytes"
    assert not lanes.busy("other")
    done.set()
    await task
    lanes.try_hold("hash").release()
