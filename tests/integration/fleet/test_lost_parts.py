"""Telegram keeps uploaded parts for hours at most: what it has lost is sent again, and nothing else."""

import asyncio
import os
import signal

import pytest
from world import PHONES, open_world

from worker.telegram.transfer import UP_BYTES

PHONE, LOST = PHONES[0], 2
RUN = ("run", "--once", "--account", PHONE)
# The saved parts become a document, which a message shows then.
STORING = "telegram.messages.UploadMedia:before:1"
SENDING = "telegram.messages.SendMedia:before:1"
MIB = 1024 * 1024


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--record-all-calls", calm=True) as opened:
        yield opened


async def _lose_a_part_and_go_on(world, pid: int) -> None:
    """The bytes are saved and about to become a document; then the server loses some of them."""
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    assert (await world.admin.lose_parts(PHONE, [LOST]))["lost"]
    os.kill(pid, signal.SIGCONT)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[-1].read_text()


async def _sent(world) -> list[dict]:
    return [message for message in await world.admin.messages(world.destination) if message["document_id"]]


async def test_a_part_that_was_lost_before_the_message_is_sent_again_within_the_same_run(world):
    path = await world.post_archive(world.sources[0], size=5 * UP_BYTES)
    await _lose_a_part_and_go_on(world, world.workers.start(*RUN, env=world.env(f"stop={STORING}")))

    await world.check_invariants()
    stored = await world.admin.calls("messages.uploadMedia")
    assert [call["error"] for call in stored] == [f"FILE_PART_{LOST}_MISSING", ""]
    parts = await world.admin.calls("upload.saveFilePart")
    assert len(parts) == -(-path.stat().st_size // UP_BYTES) + 1
    assert [message["size"] for message in await _sent(world)] == [path.stat().st_size]


async def _flood_the_lost_part(world, path) -> None:
    """The part that is saved again meets a long flood wait."""
    saved = -(-path.stat().st_size // UP_BYTES)
    await world.admin.add_rule(
        "upload.saveFilePart", "error", nth=saved + 1, code=420, text="FLOOD_WAIT_3600"
    )
    await _lose_a_part_and_go_on(world, world.workers.start(*RUN, env=world.env(f"stop={STORING}")))
    stored = await world.admin.calls("messages.uploadMedia")
    assert stored[-1]["error"] == f"FILE_PART_{LOST}_MISSING"


async def _state(world) -> str:
    (row,) = await world.fetch("SELECT state FROM upload_parts")
    return row["state"]


async def test_a_part_refused_for_lost_bytes_is_unsent_and_cut_anew_when_premium_lapses(world):
    world.settings |= {
        "WORKER_TRANSFER__STANDARD_LIMIT_MIB": "2",
        "WORKER_TRANSFER__PREMIUM_LIMIT_MIB": "4",
    }
    await world.admin.set_premium(PHONE, True)
    path = await world.post_archive(world.sources[0], size=3 * MIB)
    await _flood_the_lost_part(world, path)
    assert await _state(world) == "planned"

    await world.admin.set_premium(PHONE, False)
    # An hour later.
    await world.fetch("DELETE FROM flood_wait_state")
    await world.fetch("UPDATE archive_sets SET not_before = fleet_now()")
    await world.drain("--account", PHONE)
    assert [message["size"] for message in await _sent(world)] == [2 * MIB, path.stat().st_size - 2 * MIB]


async def test_a_part_that_may_have_been_sent_before_stays_so_when_its_bytes_are_lost(world):
    path = await world.post_archive(world.sources[0], size=5 * UP_BYTES)
    assert await world.run(*RUN, faults=f"kill={SENDING}") == {"signal": 9}
    await _flood_the_lost_part(world, path)
    assert await _state(world) == "sending"
