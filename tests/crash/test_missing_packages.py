"""One package that is gone was deleted by somebody; many at once are a question to a person."""

import hashlib

import pytest
from recovering import recover
from world import PHONES, open_world

A, _ = PHONES
ONE = ("--account", A)
MIB = 1024 * 1024
_INSERT = """
    WITH made AS (
        INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id,
            dest_message_id, part_count, metadata)
        SELECT $1, 'kit.zip', 10, 'zip', c.id, $2, 1, 'complete' FROM channels c WHERE c.is_destination
        RETURNING id, dest_channel_id
    )
    INSERT INTO package_parts (package_id, ordinal, dest_channel_id, message_id, file_name, byte_offset,
        byte_length)
    SELECT id, 0, dest_channel_id, $2, 'kit.zip', 0, 10 FROM made
"""


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as opened:
        yield opened


async def _publish_earlier(world, count: int) -> list[int]:
    """A library of so many packages; the ids of their messages."""
    (world.folder / "kit.zip").write_bytes(b"0123456789")
    filled = await world.admin.fill_channel(
        world.destination, count, path=world.folder / "kit.zip", by=A, text="kit {}"
    )
    ids = filled["message_ids"]
    for message_id in ids:
        await world.fetch(_INSERT, hashlib.sha256(str(message_id).encode()).digest(), message_id)
    return ids


async def _packages(world) -> dict[str, int]:
    rows = await world.fetch("SELECT state, count(*) AS n FROM packages GROUP BY state")
    return {row["state"]: row["n"] for row in rows}


async def _sets(world) -> list[str]:
    return [row["state"] for row in await world.fetch("SELECT state FROM archive_sets ORDER BY id")]


async def _said(world, *argv: str) -> str:
    assert await world.run(*argv) == {"exit": 0}
    return world.workers.logs[-1].read_text()


async def test_a_cleared_history_withdraws_nothing_and_holds_the_destination_up_until_it_is_seen_again(
    world,
):
    ids = await _publish_earlier(world, 30)
    await world.admin.delete_messages(world.destination, ids[:25])
    found = await recover(world, *ONE)
    assert found["counts"]["package"] == {"messages standing": 5, "needs you": 1}
    assert await _packages(world) == {"published": 30}

    # Other processes hear of it, and of what to do.
    await world.post_archive(world.sources[0])
    assert await world.run("run", "--once") == {"exit": 0}
    assert await _sets(world) == ["ready"]
    said = await _said(world, "status", "--json")
    assert "needs you: 25 of 30 packages are missing from Library at once" in said
    assert "worker recover --accept-missing" in said

    await world.admin.bring_back(world.destination, ids[:25])
    await world.drain()
    assert await _sets(world) == ["indexed"]
    assert "needs you" not in await _said(world, "status", "--json")


async def test_a_person_may_say_that_all_of_it_is_gone_on_purpose(world):
    ids = await _publish_earlier(world, 30)
    await world.admin.delete_messages(world.destination, ids[:25])
    foretold = await recover(world, *ONE, "--dry-run")
    assert foretold["counts"]["package"] == {"messages standing": 5, "needs you": 1}
    assert await world.fetch("SELECT * FROM missing_packages") == []
    await recover(world, *ONE)
    found = await recover(world, *ONE, "--accept-missing")
    assert found["counts"]["package"] == {"messages standing": 5, "withdrawn": 25}
    assert await _packages(world) == {"published": 5, "withdrawn": 25}
    await world.post_archive(world.sources[0])
    await world.drain()
    assert await _sets(world) == ["indexed"]


async def test_a_history_of_which_nothing_is_left_to_compare_with_is_a_question_as_well(world):
    ids = await _publish_earlier(world, 3)
    everything = [message["id"] for message in await world.admin.messages(world.destination)]
    await world.admin.delete_messages(world.destination, everything)
    found = await recover(world, *ONE)
    assert found["counts"]["package"] == {"not judged": 3, "needs you": 1}
    assert await _packages(world) == {"published": 3}
    found = await recover(world, *ONE, "--accept-missing")
    assert found["counts"]["package"] == {"not judged": 3, "withdrawn": len(ids)}


async def test_a_single_package_is_withdrawn_without_asking(world):
    ids = await _publish_earlier(world, 30)
    await world.admin.delete_messages(world.destination, ids[3:4])
    found = await recover(world, *ONE)
    assert found["counts"]["package"] == {"messages standing": 29, "withdrawn": 1}
    assert await world.fetch("SELECT * FROM missing_packages") == []


async def test_an_upload_under_way_sends_nothing_more_once_so_much_is_missing(world):
    world.settings |= {"WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1"}
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=db.uploads.sent:after:1")
    assert ended == {"signal": 9}
    await world.fetch("UPDATE channels SET missing_since = fleet_now() WHERE is_destination")
    missing = await _publish_earlier(world, 3)
    await world.admin.delete_messages(world.destination, missing)
    await recover(world, *ONE)
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    (row,) = await world.fetch("SELECT state, reason, attempts FROM archive_sets")
    assert (row["state"], row["attempts"]) == ("ready", 0)
    assert "missing from Library at once" in row["reason"]
    sent = [m for m in await world.admin.messages(world.destination) if m["document_id"] and not m["deleted"]]
    assert len(sent) == 1


async def test_a_destination_that_is_full_is_a_reason_and_not_a_failure(world):
    world.settings["WORKER_FLEET__DESTINATION_MESSAGES"] = "40"
    await world.admin.fill_channel(world.destination, 40)
    await world.post_archive(world.sources[0])
    assert await world.run("run", "--once") == {"exit": 0}
    (row,) = await world.fetch("SELECT state, reason, attempts FROM archive_sets")
    assert (row["state"], row["attempts"]) == ("ready", 0)
    assert "Library is full: it has come to message 41" in row["reason"]
    said = await _said(world, "status", "--json")
    assert "needs you: Library is full" in said
    assert "worker channels destination" in said

    world.settings["WORKER_FLEET__DESTINATION_MESSAGES"] = "100"
    await world.drain()
    assert await _sets(world) == ["indexed"]
    assert "is full" not in await _said(world, "status", "--json")
