"""How many parts are under way follows from what more of them bring."""

import asyncio
import heapq

import pytest
from hang_guard import HANG_SECONDS

from worker.telegram.depth import Depth


class Line:
    """A simulated transfer: parts leave one after the other, so many per second, and take a while to come.

    ``per_line`` is what one connection moves, where connections are slower than all of them together.
    """

    def __init__(self, *, per_second, latency, per_line=float("inf"), most=64, lines=8):
        self.per_second, self.latency, self.per_line = per_second, latency, per_line
        self.now = 0.0
        self.moved = 0
        self.depth = Depth(most, lines, clock=lambda: self.now)
        self._free_at = 0.0
        self._under_way = []

    async def move(self, seconds):
        """Keep as many parts under way as the depth allows."""
        end = self.now + seconds
        while self.now < end:
            while len(self._under_way) < self.depth.limit:
                entered = await self.depth.enter()
                pace = min(self.per_second, self.per_line * self.depth.lines)
                self._free_at = max(self._free_at, self.now) + 1 / pace
                heapq.heappush(self._under_way, (self._free_at + self.latency, entered))
            self.now, entered = heapq.heappop(self._under_way)
            self.moved += 1
            self.depth.leave(entered, moved=True)


async def test_a_long_line_is_filled():
    line = Line(per_second=1000, latency=0.2)
    await line.move(5)
    assert line.depth.limit == 64
    assert line.depth.lines == 8


async def test_a_short_line_is_not_crowded():
    line = Line(per_second=100, latency=0.01)
    await line.move(3)
    assert line.depth.limit <= 32


async def test_a_slow_line_is_kept_busy_without_a_queue():
    line = Line(per_second=20, latency=0.05)
    await line.move(10)
    before = line.moved
    await line.move(10)
    assert line.moved - before >= 0.95 * 200
    assert line.depth.limit <= 6, "the last of so many waits a quarter of a second"


async def test_a_line_that_is_slowed_down_for_a_while_comes_back():
    line = Line(per_second=20, latency=0.05)
    await line.move(10)
    line.latency = 0.4
    await line.move(10)
    line.latency = 0.05
    await line.move(10)
    before = line.moved
    await line.move(10)
    assert line.moved - before >= 0.95 * 200


@pytest.mark.parametrize("latency", [0.1, 0.2, 0.25, 0.3, 0.4])
async def test_a_way_that_has_become_longer_is_filled_again(latency):
    line = Line(per_second=60, latency=0.02, most=32)
    await line.move(5)
    line.latency = latency
    await line.move(130)
    before = line.moved
    await line.move(30)
    assert line.moved - before >= 0.8 * 30 * 60


async def test_a_line_that_has_become_slower_keeps_no_longer_queue():
    line = Line(per_second=200, latency=0.05)
    await line.move(5)
    line.per_second = 10
    await line.move(130)
    assert line.depth.limit <= 5


async def test_the_small_last_part_of_a_file_does_not_count_as_the_time_of_one():
    now = 0.0
    depth = Depth(32, 8, clock=lambda: now)
    for number in range(60):
        entered, small = await depth.enter(), number % 5 == 4
        now += 0.01 if small else 0.2
        depth.leave(entered, moved=True, is_last=small)
    assert depth.limit >= 2
    assert depth._use._alone == pytest.approx(0.2)


async def test_connections_that_are_slow_by_themselves_become_more():
    line = Line(per_second=1000, latency=0.05, per_line=5)
    await line.move(30)
    assert line.depth.lines == 8
    before = line.moved
    await line.move(10)
    assert line.moved - before >= 0.95 * 400


async def test_what_did_not_pay_is_tried_again_later():
    line = Line(per_second=100, latency=0.01)
    await line.move(3)
    line.per_second, line.latency = 10_000, 0.5
    await line.move(60)
    assert line.depth.limit == 64


async def test_a_refusal_halves_the_depth_and_it_rests_there():
    line = Line(per_second=1000, latency=0.2)
    await line.move(5)
    line.depth.narrow()
    assert line.depth.limit == 32
    await line.move(2)
    assert line.depth.limit == 32
    for _ in range(10):
        line.depth.narrow()
    assert line.depth.limit == 1
    assert line.depth.lines == 1


async def test_never_more_are_under_way_than_allowed():
    depth = Depth(4, 2)
    entered = [await depth.enter() for _ in range(4)]
    waiting = [asyncio.create_task(depth.enter()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    depth.leave(entered[0], moved=True)
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.done() for task in waiting] == [True, False, False]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_waiter_that_is_cancelled_with_its_turn_in_hand_passes_it_on():
    depth = Depth(1, 1)
    entered = await depth.enter()
    first, second = (asyncio.create_task(depth.enter()) for _ in range(2))
    await asyncio.sleep(0)
    depth.leave(entered, moved=False)
    first.cancel()
    await asyncio.wait_for(second, HANG_SECONDS)
    with pytest.raises(asyncio.CancelledError):
        await first
