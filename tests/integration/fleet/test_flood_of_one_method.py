"""A flood wait stops the method it names, of the account it was given to, whoever runs that account."""

import asyncio
import contextlib
import json
import os
import signal

import pytest
from hang_guard import until
from worker_command import worker
from world import PHONES, open_world

HISTORY = "messages.getHistory"
FLOODED, OTHER = PHONES
AGAIN_AND_AGAIN = {"WORKER_FLEET__CYCLE_SECS": "0.5", "WORKER_FLEET__SETS_IN_FLIGHT": "1"}


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as opened:
        yield opened


async def _calls(world, method, phone, *, after=0.0, before=float("inf")):
    return [
        call
        for call in await world.admin.calls(method)
        if call["phone"] == phone.lstrip("+") and after < call["at"] < before
    ]


async def _flood(world, seconds):
    """From here on the next history call of the first account is refused."""
    await world.admin.add_rule(
        HISTORY, "error", code=420, text=f"FLOOD_WAIT_{seconds}", account=FLOODED.lstrip("+")
    )


@contextlib.asynccontextmanager
async def _chatter(world):
    """Somebody writes in the sources all the time: only what has moved is read."""

    async def write():
        while True:
            for source in world.sources:
                await world.admin.post_text(source, "hello")
            await asyncio.sleep(0.2)

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def _when_flooded(world):
    """The refused call, once the fleet's database knows of it."""
    await until(lambda: world.fetch("SELECT 1 FROM flood_wait_state"))
    return next(call for call in await _calls(world, HISTORY, FLOODED) if not call["ok"])


async def _next_after(world, known):
    """The first history call of the flooded account after these, some of which left while the first was refused."""
    more = await until(lambda: _history_after(world, len(known)))
    return more[0]


async def _history_after(world, count):
    return (await _calls(world, HISTORY, FLOODED))[count:]


async def _wait_shown(world):
    ended = await worker("status", "--json", database_url=world.database_url)
    assert ended.code == 0, ended.err
    (wait,) = json.loads(ended.out)["rate_limits"]["active_waits"]
    return wait


async def _less_is_shown(world, than):
    return 0 < (await _wait_shown(world))["clears_in_seconds"] < than["clears_in_seconds"]


async def _stop(world, pid):
    os.kill(pid, signal.SIGTERM)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[-1].read_text()


# That the rest is over two seconds after the wait at the latest is shown on a manual clock (G6).
@pytest.mark.parametrize("seconds", [10, pytest.param(20, marks=pytest.mark.long)])
async def test_only_that_method_of_that_account_stops(world, seconds):
    # Sets that are found already, so that there is something to transfer while nothing can be scanned.
    await world.admin.kick(world.sources[0], OTHER)
    await world.forget_membership(OTHER, world.sources[0])
    for _ in range(2 * seconds):
        await world.post_archive(world.sources[0], size=200_000)
    killed = await world.run("run", "--account", FLOODED, faults="kill=db.scan.page:after:1")
    assert killed == {"signal": 9}
    await world.admin.set_shape(mbps=4)
    await _flood(world, seconds)
    pid = world.workers.start("run", env=world.env(**AGAIN_AND_AGAIN))
    async with _chatter(world):
        began = (await _when_flooded(world))["at"]
        shown = await _wait_shown(world)
        assert (shown["method"], shown["wait_seconds"]) == (HISTORY, seconds)
        assert seconds + 2 > shown["clears_in_seconds"]
        known = await _calls(world, HISTORY, FLOODED)
        assert await until(lambda: _less_is_shown(world, shown))
        again = (await _next_after(world, known))["at"]
    await _stop(world, pid)

    assert again - began >= seconds + 1
    sent = await _calls(world, "messages.sendMedia", FLOODED, after=began, before=began + seconds)
    read = await _calls(world, HISTORY, OTHER, after=began, before=began + seconds)
    assert len(sent) >= 2, "its transfers go on"
    assert len(read) >= 2, "the other account goes on"
    assert all(call["ok"] for call in sent + read)
    assert not any(call["early"] for call in await world.admin.calls())


@pytest.mark.parametrize("seconds", [8, pytest.param(20, marks=pytest.mark.long)])
async def test_the_next_owner_of_a_killed_one_keeps_the_wait(world, seconds):
    world.calm = False
    await world.post_archive(world.sources[0])
    await _flood(world, seconds)
    pid = world.workers.start("run", "--account", FLOODED, env=world.env(**AGAIN_AND_AGAIN))
    began = (await _when_flooded(world))["at"]
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(world.workers.wait, pid)
    known = await _calls(world, HISTORY, FLOODED)

    pid = world.workers.start("run", "--account", FLOODED, env=world.env(**AGAIN_AND_AGAIN))
    again = (await _next_after(world, known))["at"]
    await _stop(world, pid)
    assert again - began >= seconds + 1
    connected = await _calls(world, "users.getFullUser", FLOODED, after=began, before=began + seconds)
    assert len(connected) == 1, "the next owner was at work during the wait"
    assert not any(call["early"] for call in await world.admin.calls())
