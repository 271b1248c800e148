"""An account that cannot finish what it began: another one does, and nothing is doubled."""

import asyncio
import os
import signal

import pytest
from recovering import recover
from world import PHONES, open_world

A, B = PHONES
MIB = 1024 * 1024
SPLIT = {"WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1", "WORKER_TELEGRAM__CALL_TIMEOUT_SECS": "2"}


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as opened:
        opened.settings |= SPLIT
        yield opened


async def _begin(world) -> None:
    """A has applied part 2 of 3, has not heard of it, and is dead."""
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    rule = await world.admin.add_rule("messages.sendMedia", "mute", nth=2)
    pid = world.workers.start("run", "--once", "--account", A, env=world.env())
    await world.until_hit(rule)
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(world.workers.wait, pid)
    await world.until_buried()


async def _senders(world) -> list[str]:
    messages = [m for m in await world.admin.messages(world.destination) if m["document_id"]]
    return [f"+{m['phone']}" for m in messages if not m["deleted"]]


async def test_a_banned_accounts_upload_is_finished_by_another_with_no_message_doubled(world):
    await _begin(world)
    await world.admin.ban_account(A)
    assert await world.run("run", "--once", "--account", A) == {"exit": 1}
    assert await world.fetch("SELECT 1 FROM accounts WHERE phone = $1 AND state <> 'ready'", A)
    await world.drain("--account", B)
    await world.check_invariants()
    assert await _senders(world) == [A, A, B]


async def test_a_healthy_accounts_upload_is_left_to_it_unless_a_person_says_otherwise(world):
    await _begin(world)
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert len(await _senders(world)) == 2
    found = await recover(world, "--take-over", A)
    assert found["counts"]["upload"] == {"taken over": 1, "finished": 1}
    await world.drain()
    await world.check_invariants()
    assert await _senders(world) == [A, A, B]


async def test_an_account_that_a_worker_runs_is_not_taken_over(world):
    await _begin(world)
    held = world.env("stop=lock.account:after:1")
    pid = world.workers.start("run", "--once", "--account", A, env=held)
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    found = await recover(world, "--take-over", A)
    assert [*found["counts"]["upload"]] == ["not taken over"]
    assert len(await _senders(world)) == 2
    os.kill(pid, signal.SIGCONT)
    await asyncio.to_thread(world.workers.wait, pid)
    await world.drain()
    await world.check_invariants()


async def test_the_taker_uses_another_copy_when_it_cannot_read_the_source(world):
    await _begin(world)
    path = world.folder / "archive-1.zip"
    await world.admin.kick(world.sources[0], B)
    await world.forget_membership(B, world.sources[0])
    await world.admin.ban_account(A)
    assert await world.run("run", "--once", "--account", A) == {"exit": 1}
    # Nobody who may work has the bytes: the upload waits.
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await _senders(world) == [A, A]
    # The copy turns up; reading it tells that it is the same.
    await world.admin.post_document(world.sources[1], path, "copy.zip")
    for _ in range(5):
        assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await _senders(world) == [A, A, B]
    states = [row["state"] for row in await world.fetch("SELECT state FROM archive_sets ORDER BY id")]
    assert states == ["ready", "indexed"], "the other copy waits for somebody who reads it"


@pytest.mark.long
@pytest.mark.parametrize(
    "place",
    [
        "db.uploads.own:after:1",
        "db.uploads.rewrite:before:1",
        "db.uploads.rewrite:after:1",
        "telegram.messages.SendMedia:after:1",
    ],
)
async def test_a_taker_that_is_killed_leaves_an_upload_that_can_still_be_finished(world, place):
    await _begin(world)
    await world.admin.ban_account(A)
    assert await world.run("run", "--once", "--account", A) == {"exit": 1}
    assert await world.run("run", "--once", "--account", B, faults=f"kill={place}") == {"signal": 9}
    await world.drain("--account", B)
    await world.check_invariants()
    assert await _senders(world) == [A, A, B]


async def test_a_message_that_names_nobody_and_no_document_is_neither_adopted_nor_sent_again(world):
    """In a channel, at a server that makes no document of what nobody sees: only the sender could tell."""
    await world.admin.add_rule("messages.uploadMedia", "error", code=400, text="MEDIA_INVALID", count=0)
    await _begin(world)
    await world.admin.ban_account(A)
    assert await world.run("run", "--once", "--account", A) == {"exit": 1}
    found = await recover(world, "--account", B)
    assert found["counts"]["upload"] == {"waits": 1}
    assert await _senders(world) == [A, A]
    await recover(world, "--give-up", "1")
    assert await _senders(world) == [A], "what nobody can tell is left, and named"
