"""A pause is obeyed before the next page and the next set, and its end is heard at once."""

import asyncio
import os
import signal

import pytest
from hang_guard import until
from world import PHONES, open_world

from worker.store.pauses import PauseStore

ONE_ACCOUNT = ("--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


async def _worker(world, *arguments):
    assert await world.run(*arguments) == {"exit": 0}, world.workers.logs[-1].read_text()
    return world.workers.logs[-1].read_text()


async def _published(world) -> int:
    return (await world.fetch("SELECT count(*) AS n FROM packages"))[0]["n"]


async def test_g14_a_paused_fleet_reads_no_page_and_claims_no_set_until_it_is_resumed(world):
    await world.post_archive(world.sources[0])
    assert "the fleet is paused until: worker resume" in await _worker(world, "pause")
    await _worker(world, "run", "--once", *ONE_ACCOUNT)
    assert await world.fetch("SELECT id FROM archive_sets") == []
    assert await world.admin.calls("messages.getHistory") == []
    assert "the fleet goes on" in await _worker(world, "resume")
    await world.drain(*ONE_ACCOUNT)
    await world.check_invariants()


async def test_g14_a_pause_takes_effect_before_the_next_page(world, database):
    for number in range(450):
        await world.admin.post_text(world.sources[0], f"message {number}")
    # Slow enough for a person to step in between two pages.
    await world.admin.add_rule("messages.getHistory", "delay", seconds=2, count=0)
    pid = world.workers.start("run", "--once", *ONE_ACCOUNT, env=world.env())

    async def messages_seen() -> int:
        rows = await world.fetch("SELECT messages_seen FROM scan_cursors ORDER BY id LIMIT 1")
        return rows[0]["messages_seen"] if rows else 0

    async def has_read_a_page():
        return await messages_seen() > 0

    await until(has_read_a_page)
    await PauseStore(database).pause()
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[-1].read_text()
    assert 0 < await messages_seen() < 450


async def test_g14_a_paused_channel_rests_while_the_others_go_on(world):
    await world.post_archive(world.sources[0])
    await _worker(world, "run", "--once", *ONE_ACCOUNT)
    await world.post_archive(world.sources[0])
    await world.post_archive(world.sources[1])
    await _worker(world, "pause", "--channel", "First")
    await _worker(world, "run", "--once", *ONE_ACCOUNT)
    assert await _published(world) == 2
    seen = await world.fetch(
        "SELECT c.title FROM archive_sets s JOIN channels c ON c.id = s.channel_id ORDER BY s.id"
    )
    assert [row["title"] for row in seen] == ["First", "Second"]
    await _worker(world, "resume", "--channel", "First")
    await world.drain(*ONE_ACCOUNT)
    await world.check_invariants()


async def test_g14_a_set_found_before_its_channel_was_paused_is_not_claimed(world):
    await world.post_archive(world.sources[0])
    await _worker(world, "run", "--once", *ONE_ACCOUNT)
    await world.fetch(
        "INSERT INTO archive_sets (channel_id, name, format, state, part_count, total_size, lead_document_id, posted_at)"
        " SELECT channel_id, 'Later.zip', 'zip', 'ready', 1, 1, 99, fleet_now() FROM archive_sets"
    )
    await _worker(world, "pause", "--channel", str(world.sources[0]))
    await _worker(world, "run", "--once", *ONE_ACCOUNT)
    (row,) = await world.fetch("SELECT state, attempts FROM archive_sets WHERE name = 'Later.zip'")
    assert (row["state"], row["attempts"]) == ("ready", 0)


async def test_g14_another_accounts_pause_stops_nobody_else(world):
    await world.post_archive(world.sources[0])
    await _worker(world, "pause", "--account", PHONES[1])
    await world.drain()
    await world.check_invariants()
    (row,) = await world.fetch(
        "SELECT a.phone FROM packages p JOIN runs r ON r.id = p.ingestion_run_id JOIN accounts a ON a.id = r.account_id"
    )
    assert row["phone"] == PHONES[0]


async def test_g14_a_running_worker_hears_of_the_end_of_a_pause_at_once(world):
    await world.post_archive(world.sources[0])
    await _worker(world, "pause")
    # Without being woken it would look again in an hour.
    pid = world.workers.start("run", *ONE_ACCOUNT, env=world.env(WORKER_FLEET__CYCLE_SECS="3600"))
    log = world.workers.logs[-1]

    async def rests():
        return log.exists() and "account.rests" in log.read_text()

    async def published():
        return await _published(world) == 1

    try:
        await until(rests)
        await _worker(world, "resume")
        await until(published)
    finally:
        os.kill(pid, signal.SIGTERM)
        assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, log.read_text()
