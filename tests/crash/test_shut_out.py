"""A right that is withdrawn in the middle of the work: said clearly, and gone on with when it is back."""

import asyncio
import json
import os
import signal

import pytest
from hang_guard import until
from worker_command import worker
from world import PHONES, open_world

A, B = PHONES
ONE = ("--account", A)
MIB = 1024 * 1024


@pytest.fixture
async def world(tmp_path, database_url):
    """A has sent one of three parts, and may send no more."""
    async with open_world(tmp_path, database_url) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "1"
        await opened.post_archive(opened.sources[0], size=5 * MIB // 2)
        ended = await opened.run("run", "--once", *ONE, faults="kill=db.uploads.sent:after:1")
        assert ended == {"signal": 9}
        await opened.admin.join(opened.destination, A, admin=False)
        yield opened


async def _senders(world) -> list[str]:
    messages = await world.admin.messages(world.destination)
    return [f"+{m['phone']}" for m in messages if m["document_id"] and not m["deleted"]]


async def _asked(world, *command) -> dict:
    ended = await worker(*command, "--json", database_url=world.database_url)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


async def test_an_account_that_may_not_post_any_more_says_what_it_waits_for_and_what_helps(world):
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await _senders(world) == [A], "what a healthy account has begun is left to it"
    (row,) = await world.fetch("SELECT id, attempts FROM archive_sets")
    assert row["attempts"] == 0, "it is no fault of the set"
    (account,) = await world.fetch("SELECT id FROM accounts WHERE phone = $1", A)
    command = f"worker recover --take-over {account['id']}"
    why = (await _asked(world, "sets", "show", str(row["id"])))["why"]
    assert "may no longer post in Library" in why
    assert command in why
    waits = [item["why"] for item in (await _asked(world, "status"))["sync"]["waiting"]]
    assert [one for one in waits if command in one and "may not post in Library" in one]


async def test_an_upload_goes_on_by_itself_when_the_right_to_post_is_back(world):
    env = world.env(WORKER_FLEET__CYCLE_SECS="1")
    pid = world.workers.start("run", *ONE, env=env)

    async def waits() -> bool:
        (row,) = await world.fetch("SELECT reason FROM archive_sets")
        return "may no longer post" in (row["reason"] or "")

    async def is_published() -> bool:
        return bool(await world.fetch("SELECT 1 FROM archive_sets WHERE state = 'indexed'"))

    try:
        await until(waits)
        await world.admin.join(world.destination, A, admin=True)
        await until(is_published)
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(world.workers.wait, pid)
    await world.drain(*ONE)
    await world.check_invariants()
    assert await _senders(world) == [A, A, A]
