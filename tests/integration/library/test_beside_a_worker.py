"""Commands that need a session while a worker has every account: it does them, and nobody else connects one."""

import json

import pytest
from running_worker import resting_worker, running_worker
from world import PHONES, open_world

# All that is known of what was published, in an order in which it can be deleted.
LIBRARY = ("previews", "package_files", "package_originals", "package_parts", "upload_parts", "uploads")


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        for _ in range(2):
            await opened.post_archive(opened.sources[0])
        await opened.drain()
        yield opened


async def _command(world, *argv: str) -> object:
    """What the command printed; it connected no account itself."""
    runs = (await world.fetch("SELECT count(*) FROM runs"))[0][0]
    ended = await world.run(*argv, "--json")
    # Logs and output share a file; the document is what begins with a line of its own.
    text = "\n" + world.workers.logs[-1].read_text()
    assert ended == {"exit": 0}, text
    assert (await world.fetch("SELECT count(*) FROM runs"))[0][0] == runs
    return json.loads(text[max(text.rfind("\n{\n"), text.rfind("\n[\n")) :])


async def _done(world) -> list[tuple]:
    rows = await world.fetch(
        "SELECT r.kind, r.state, w.pid FROM requests r JOIN workers w ON w.id = r.worker_id ORDER BY r.id"
    )
    return [tuple(row) for row in rows]


async def test_the_destination_is_compared_by_the_worker_that_has_the_account(world):
    async with running_worker(world) as worker:
        (report,) = (await _command(world, "verify", "--full"))["channels"]
        assert await _done(world) == [("verify", "done", worker)]
    assert (report["packages"], report["marked"], report["findings"]) == (2, 2, [])
    assert report["bytes_read"] > 2 * 60_000


async def test_the_library_is_rebuilt_by_the_worker_that_has_the_account(world):
    known = await world.fetch("SELECT content_hash FROM packages ORDER BY content_hash")
    async with resting_worker(world) as worker:
        for table in LIBRARY:
            await world.fetch(f"DELETE FROM {table}")
        await world.fetch("UPDATE archive_sets SET state = 'skipped', package_id = NULL, reason = 'lost'")
        await world.fetch("DELETE FROM packages")
        (report,) = (await _command(world, "rebuild"))["channels"]
        assert await _done(world) == [("rebuild", "done", worker)]
    assert (report["packages"], report["known"], report["left_out"]) == (2, 0, [])
    assert await world.fetch("SELECT content_hash FROM packages ORDER BY content_hash") == known


async def test_channels_are_discovered_by_the_worker_that_has_the_accounts(world):
    async with resting_worker(world) as worker:
        made = await world.admin.create_channel("Late", members=[PHONES[0]])
        found = await _command(world, "channels", "discover")
        assert await _done(world) == [("discover", "done", worker)] * 2
    assert found == [{"account": 1, "channels": 4}, {"account": 2, "channels": 3}]
    (row,) = await world.fetch(
        "SELECT count(*) FROM memberships m JOIN channels c ON c.id = m.channel_id"
        " WHERE c.telegram_id = $1 AND m.can_read",
        made["channel_id"],
    )
    assert row["count"] == 1
