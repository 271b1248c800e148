"""A worker that goes on running while commands are given beside it."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

from hang_guard import HANG_SECONDS
from world import World

BOTH_LEASED = "SELECT count(*) = 2 FROM runs WHERE ended_at IS NULL"


@contextlib.asynccontextmanager
async def running_worker(world: World, *, killed: bool = False) -> AsyncIterator[int]:
    """A worker that has both accounts, told to stop at the end, or killed."""
    pid = world.workers.start("run", env=world.env(WORKER_FLEET__CYCLE_SECS="60"))
    await world.until(BOTH_LEASED)
    yield pid
    os.kill(pid, signal.SIGKILL if killed else signal.SIGTERM)
    ended = await asyncio.to_thread(world.workers.wait, pid)
    assert ended == ({"signal": 9} if killed else {"exit": 0}), world.workers.logs[-1].read_text()


def _resting(log: Path) -> set[int]:
    """The accounts that were found to be paused."""
    # The last line may not be written to its end.
    lines = log.read_text().rpartition("\n")[0].splitlines()
    return {json.loads(line)["account"] for line in lines if '"account.rests"' in line}


@contextlib.asynccontextmanager
async def resting_worker(world: World) -> AsyncIterator[int]:
    """The same while the fleet is paused: it does what it is asked for, and nothing by itself."""
    assert await world.run("pause") == {"exit": 0}
    async with running_worker(world) as pid:
        log = world.workers.logs[-1]
        async with asyncio.timeout(HANG_SECONDS):
            while len(_resting(log)) < 2:
                await asyncio.to_thread(time.sleep, 0.05)
        yield pid
