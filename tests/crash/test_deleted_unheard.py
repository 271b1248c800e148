"""A message that was sent, and deleted by somebody before the fleet had heard of it."""

import pytest
from recovering import recover
from world import PHONES, open_world

ONE = ("--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    """Sent, not heard of, and deleted."""
    async with open_world(tmp_path, database_url) as opened:
        await opened.post_archive(opened.sources[0])
        ended = await opened.run("run", "--once", *ONE, faults="kill=telegram.messages.SendMedia:after:1")
        assert ended == {"signal": 9}
        (sent,) = await _standing(opened)
        await opened.admin.delete_messages(opened.destination, [sent])
        await opened.until_buried()
        yield opened


async def _standing(world) -> list[int]:
    messages = await world.admin.messages(world.destination)
    return [m["id"] for m in messages if m["document_id"] and not m["deleted"]]


async def test_w6_what_telegram_names_is_a_part_that_somebody_deleted_and_not_published_again(world):
    await world.drain(*ONE)
    found = await recover(world, *ONE)
    assert found["counts"]["package"] == {"withdrawn": 1}
    (row,) = await world.fetch("SELECT state, reason FROM archive_sets")
    assert row["state"] == "skipped"
    assert "republish_deleted" in row["reason"]
    assert await _standing(world) == []


async def test_w6_what_telegram_does_not_name_waits_and_says_which_command_ends_it(world):
    await world.admin.set_repeats(as_errors=True)
    await world.run("run", "--once", *ONE)
    (row,) = await world.fetch("SELECT id, reason FROM archive_sets")
    assert f"worker recover --give-up {row['id']}" in row["reason"]
    await recover(world, "--give-up", str(row["id"]), *ONE)
    assert await world.run("sets", "retry", str(row["id"])) == {"exit": 0}
    await world.drain(*ONE)
    assert len(await _standing(world)) == 1
