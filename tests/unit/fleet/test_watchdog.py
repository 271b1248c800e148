"""An event loop that stands still is told of, with what it works on."""

import asyncio
import threading

from hang_guard import HANG_SECONDS

from worker.fleet.watchdog import watched_loop
from worker.log import at_work


async def test_w3_a_loop_that_stands_still_is_told_of_with_its_stack_and_what_it_works_on():
    told = threading.Event()
    found = []

    def tell(standstill):
        found.append(standstill)
        told.set()

    def blocks_the_loop():
        assert told.wait(HANG_SECONDS)

    with watched_loop(0.2, tell), at_work("set 42"):
        blocks_the_loop()
    (standstill,) = found
    assert standstill.task == "set 42"
    assert "blocks_the_loop" in standstill.stack


async def test_a_loop_that_moves_is_not_told_of_and_no_thread_stays():
    before = threading.active_count()
    found = []
    with watched_loop(60.0, found.append):
        await asyncio.sleep(0)
    assert found == []
    assert threading.active_count() == before
