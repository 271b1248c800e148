"""How many parts are under way follows from what more of them bring."""

import asyncio

import pytest

from worker.telegram.depth import Depth


class Line:
    """A simulated transfer: so many parts per second at most, so many seconds per part alone."""

    def __init__(self, depth, *, per_second, latency):
        self.depth, self.per_second, self.latency = depth, per_second, latency
        self.now = 0.0

    async def move(self, seconds):
        """One generation of parts after the other, as long as it takes."""
        end = self.now + seconds
        while self.now < end:
            count = self.depth.limit
            for _ in range(count):
                await self.depth.enter()
            self.now += max(self.latency, count / self.per_second)
            for _ in range(count):
                self.depth.leave(moved=True)


def simulated(*, per_second, latency, most=64, lines=8):
    line = Line(None, per_second=per_second, latency=latency)
    line.depth = Depth(most, lines, clock=lambda: line.now)
    return line


async def test_a_long_line_is_filled():
    line = simulated(per_second=1000, latency=0.2)
    await line.move(5)
    assert line.depth.limit == 64
    assert line.depth.lines == 8


async def test_a_short_line_is_not_crowded():
    line = simulated(per_second=100, latency=0.01)
    await line.move(3)
    assert line.depth.limit == 16


async def test_what_did_not_pay_is_tried_again_later():
    line = simulated(per_second=100, latency=0.01)
    await line.move(3)
    line.per_second, line.latency = 10_000, 0.5
    await line.move(60)
    assert line.depth.limit == 64


async def test_a_refusal_halves_the_depth_and_it_rests_there():
    line = simulated(per_second=1000, latency=0.2)
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
    for _ in range(4):
        await depth.enter()
    waiting = [asyncio.create_task(depth.enter()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    depth.leave(moved=True)
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.done() for task in waiting] == [True, False, False]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_waiter_that_is_cancelled_with_its_turn_in_hand_passes_it_on():
    depth = Depth(1, 1)
    await depth.enter()
    first, second = (asyncio.create_task(depth.enter()) for _ in range(2))
    await asyncio.sleep(0)
    depth.leave(moved=False)
    first.cancel()
    await asyncio.wait_for(second, 1)
    with pytest.raises(asyncio.CancelledError):
        await first
