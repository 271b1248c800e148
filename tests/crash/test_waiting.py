"""Two accounts meet at one content: who waits for whom, and for how long."""

import asyncio
import contextlib
import os
import signal

import pytest
from world import PHONES, open_world

A, B = PHONES


@pytest.fixture
async def world(tmp_path, database_url):
    """The same bytes as two documents, one per source, and each account reads one of them."""
    async with open_world(tmp_path, database_url) as opened:
        path = await opened.post_archive(opened.sources[0])
        await opened.admin.post_document(opened.sources[1], path, "same bytes.zip")
        for source, phone in ((opened.sources[1], A), (opened.sources[0], B)):
            await opened.admin.kick(source, phone)
            await opened.forget_membership(phone, source)
        yield opened


@contextlib.asynccontextmanager
async def _held(world, place: str):
    """A stands still at this place inside the block, and is killed at its end."""
    pid = world.workers.start("run", "--once", "--account", A, env=world.env(f"stop={place}"))
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(world.workers.wait, pid)


async def _set_of(world, name: str):
    query = "SELECT state, reason, not_before > fleet_now() AS waits FROM archive_sets WHERE name = $1"
    (row,) = await world.fetch(query, name)
    return row


async def test_a_busy_content_is_looked_at_again_later_never_given_up(world):
    async with _held(world, "lock.content:after:1"):
        assert await world.run("run", "--once", "--account", B) == {"exit": 0}
        row = await _set_of(world, "same bytes.zip")
        assert (row["state"], row["reason"]) == ("ready", "another worker is publishing the same content")
    await world.drain()
    await world.check_invariants()


async def test_a_content_is_locked_on_a_connection_that_nothing_else_uses(world):
    async with _held(world, "db.uploads.intent:after:1"):
        rows = await world.fetch(
            "SELECT application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
            " WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND a.datname = current_database()"
        )
        (row,) = rows
        assert row["application_name"].startswith("archive-fleet locks ")
    await world.drain()
    await world.check_invariants()


async def test_an_open_intent_of_another_account_is_waited_for_by_name_and_longer_each_time(world):
    async with _held(world, "db.uploads.intent:after:1"):
        pass
    waits = []
    for _ in range(2):
        await world.fetch("UPDATE archive_sets SET not_before = fleet_now() WHERE name = 'same bytes.zip'")
        assert await world.run("run", "--once", "--account", B) == {"exit": 0}
        row = await _set_of(world, "same bytes.zip")
        assert row["state"] == "ready"
        assert row["reason"].startswith("waiting for account ")
        waits += await world.fetch("SELECT waits FROM archive_sets WHERE name = 'same bytes.zip'")
    assert 0 < waits[0]["waits"] < waits[1]["waits"]
    # The end of the upload wakes whoever waits for it.
    await world.drain()
    await world.check_invariants()
    assert (await _set_of(world, "same bytes.zip"))["state"] == "duplicate"
