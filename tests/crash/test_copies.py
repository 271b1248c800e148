"""A copy whose answer is lost or late is one message all the same."""

import asyncio
import os
import signal
import time

import pytest
from world import PHONES, open_world

ONE = ("--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--record-all-calls") as opened:
        await opened.fetch("UPDATE channels SET copy_mode = true WHERE is_source")
        await opened.post_archive(opened.sources[0])
        yield opened


async def test_a_copy_applied_without_an_answer_is_adopted_not_sent_again(world):
    await world.admin.add_rule("messages.sendMedia", "drop_reply")
    await world.drain(*ONE)
    await world.check_invariants()
    assert len(await world.admin.calls("messages.sendMedia")) == 1
    assert await world.admin.calls("upload.saveFilePart") == []


@pytest.mark.long
@pytest.mark.parametrize("as_errors", [False, True])
async def test_a_copy_that_is_applied_late_and_the_upload_after_it_make_one_message(world, as_errors):
    await world.admin.set_repeats(as_errors=as_errors)
    rule = await world.admin.add_rule("messages.sendMedia", "delay", seconds=None)
    pid = world.workers.start("run", "--once", *ONE, env=world.env())
    await world.until_hit(rule)
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(world.workers.wait, pid)
    draining = asyncio.create_task(world.drain(*ONE))
    # The server holds the copy until the next owner has looked for it, and uploaded and sent.
    while not draining.done() and not await world.admin.calls("messages.sendMedia"):
        await asyncio.to_thread(time.sleep, 0.1)
    await world.admin.lift_rule(rule)
    await draining
    await world.until_called("messages.sendMedia", 2)
    await world.check_invariants()


@pytest.mark.long
async def test_a_copy_that_never_comes_to_an_end_is_uploaded_in_the_end(world):
    await world.admin.add_rule("messages.sendMedia", "stall")
    await world.drain(*ONE)
    await world.check_invariants()
    assert await world.admin.calls("upload.saveFilePart") != []
