"""What the status says while a worker really works, on the loopback Telegram."""

import asyncio
import contextlib
import os
import signal

import pytest
from hang_guard import HANG_SECONDS
from world import PHONES, open_world

from worker.status.read import read_status

ONE_ACCOUNT = ("--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


@contextlib.asynccontextmanager
async def _running(world, **settings):
    pid = world.workers.start("run", *ONE_ACCOUNT, env=world.env(**settings))
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(world.workers.wait, pid)


async def _until(database, condition):
    """The first status that fulfils the condition."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            status = await read_status(database, silent_after=30.0)
            if condition(status):
                return status
            await asyncio.sleep(0.1)


async def test_a_transfer_shows_its_account_step_speed_and_end(world, database):
    await world.post_archive(world.sources[0], size=12_000_000)
    await world.admin.add_rule("upload.getFile", "delay", seconds=0.7, count=0)
    async with _running(world, WORKER_TRANSFER__PARTS_IN_FLIGHT="1"):
        status = await _until(database, lambda seen: any(each.eta for each in seen.sync.current))
    (current,) = status.sync.current
    assert (current.account, current.channel, current.step) == ("Ada", "First", "fetch")
    assert 0 < current.done_bytes < current.total_bytes
    assert 100_000 < current.bytes_per_second < 5_000_000
    assert status.accounts[0].worker == status.workers[0].label
    assert status.workers[0].memory_bytes > 10_000_000
    assert status.sync.state == "running"


async def test_a_flood_wait_is_shown_with_its_countdown_and_survives_the_worker(world, database):
    await world.post_archive(world.sources[0])
    await world.admin.add_rule(
        "messages.getHistory", "error", code=420, text="FLOOD_WAIT_200", account=PHONES[0]
    )
    async with _running(world):
        status = await _until(database, lambda seen: seen.rate_limits.restricted)
    (wait,) = status.rate_limits.active_waits
    assert (wait.account, wait.method, wait.wait_seconds) == ("Ada", "messages.getHistory", 200)
    assert 150 < wait.clears_in <= 203
    later = await read_status(database, silent_after=30.0)
    assert later.rate_limits.active_waits[0].clears_in < wait.clears_in
    assert later.activity.by_method["messages.getHistory"] >= 1
