"""Telegram keeps uploaded parts for hours at most: what it has lost is sent again, and nothing else."""

import asyncio
import os
import signal

import pytest
from world import PHONES, open_world

from worker.telegram.transfer import UP_BYTES

PHONE, LOST = PHONES[0], 2


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--record-all-calls") as opened:
        yield opened


async def test_a_part_that_was_lost_before_the_message_is_sent_again_within_the_same_run(world):
    path = await world.post_archive(world.sources[0], size=5 * UP_BYTES)
    held = world.env("stop=telegram.messages.SendMedia:before:1")
    pid = world.workers.start("run", "--once", "--account", PHONE, env=held)
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    assert await world.admin.lose_parts(PHONE, [LOST]) == {"lost": 1}
    os.kill(pid, signal.SIGCONT)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}

    await world.check_invariants()
    sends = await world.admin.calls("messages.sendMedia")
    assert [call["error"] for call in sends] == [f"FILE_PART_{LOST}_MISSING", ""]
    parts = await world.admin.calls("upload.saveFilePart")
    assert len(parts) == -(-path.stat().st_size // UP_BYTES) + 1
    sent = [message for message in await world.admin.messages(world.destination) if message["document_id"]]
    assert [message["size"] for message in sent] == [path.stat().st_size]
