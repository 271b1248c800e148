"""Messages deleted by hand, closed and changed destinations, sources that are gone: each told apart."""

import asyncio
import os
import signal

import pytest
from recovering import recover
from world import PHONES, open_world

A, B = PHONES
ONE = ("--account", A)
MIB = 1024 * 1024


# Each takes many seconds of real leases and real processes; `make crash` runs them.
pytestmark = pytest.mark.long


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "1"
        yield opened


async def _standing(world) -> list[int]:
    messages = await world.admin.messages(world.destination)
    return [m["id"] for m in messages if m["document_id"] and not m["deleted"]]


async def _states(world) -> list[str]:
    return [row["state"] for row in await world.fetch("SELECT state FROM archive_sets ORDER BY id")]


async def test_what_a_person_deleted_is_withdrawn_and_not_published_again(world):
    path = await world.post_archive(world.sources[0])
    await world.admin.post_document(world.sources[1], path, "copy.zip")
    await world.drain(*ONE)
    await world.post_archive(world.sources[0])
    await world.drain(*ONE)
    first, second = await _standing(world)
    await world.admin.delete_messages(world.destination, [first])

    found = await recover(world)
    assert found["counts"]["package"] == {"messages standing": 1, "withdrawn": 1}
    assert sorted(await _states(world)) == ["indexed", "ready", "skipped"]
    assert await world.run("run", "--once") == {"exit": 0}
    assert await _standing(world) == [second]
    assert sorted(await _states(world)) == ["indexed", "skipped", "skipped"]
    (row,) = await world.fetch("SELECT DISTINCT reason FROM archive_sets WHERE state = 'skipped'")
    assert "republish_deleted" in row["reason"]


async def test_with_the_setting_it_is_published_again_and_what_was_left_of_it_is_removed(world):
    world.settings["WORKER_FLEET__REPUBLISH_DELETED"] = "true"
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.drain(*ONE)
    first, second, third = await _standing(world)
    await world.admin.delete_messages(world.destination, [second])
    assert (await recover(world))["counts"]["package"]["withdrawn"] == 1
    await world.drain(*ONE)
    assert len(await _standing(world)) == 5
    found = await recover(world)
    assert found["counts"]["message"] == {"removed": 2, "gone already": 1}
    standing = await _standing(world)
    assert len(standing) == 3
    assert not {first, third} & set(standing)
    await world.check_invariants()
    assert "message" not in (await recover(world))["counts"], "a second time there is nothing to do"


async def test_a_destination_that_is_closed_to_an_account_is_not_taken_for_empty(world):
    await world.post_archive(world.sources[0])
    await world.drain(*ONE)
    before = await _standing(world)
    await world.admin.kick(world.destination, A)
    found = await recover(world, *ONE)
    assert set(found["counts"].get("package", {})) <= {"not judged"}
    found = await recover(world, "--account", B)
    assert found["counts"]["package"] == {"messages standing": 1}
    assert await _standing(world) == before
    (row,) = await world.fetch("SELECT state FROM packages")
    assert row["state"] == "published"


async def test_a_changed_destination_gets_only_what_comes_later_and_open_uploads_finish_where_they_began(
    world,
):
    await world.post_archive(world.sources[0])
    await world.drain(*ONE)
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=telegram.messages.SendMedia:after:2")
    assert ended == {"signal": 9}
    other = (await world.admin.create_channel("Annex", admins=list(PHONES)))["channel_id"]
    await world.run("run", "--once", "--account", B)
    await world.fetch("UPDATE channels SET is_destination = false WHERE is_destination")
    await world.fetch("UPDATE channels SET is_destination = true WHERE telegram_id = $1", other)
    await world.drain()
    assert len(await _standing(world)) == 4
    await recover(world)
    await world.post_archive(world.sources[0])
    await world.drain()
    assert len(await _standing(world)) == 4
    assert len([m for m in await world.admin.messages(other) if m["document_id"]]) == 1
    assert await _states(world) == ["indexed"] * 3


async def test_an_upload_waits_for_a_destination_that_closed_and_ends_when_that_is_gone_for_all(world):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=db.uploads.sent:after:1")
    assert ended == {"signal": 9}
    other = (await world.admin.create_channel("Annex", admins=list(PHONES)))["channel_id"]
    await world.admin.kick(world.destination, A)
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    (row,) = await world.fetch("SELECT state, reason FROM archive_sets")
    assert row["state"] == "ready"
    assert "may not read Library any more" in row["reason"]

    # Everybody is shut out, and a person has turned to another channel.
    await world.admin.kick(world.destination, B)
    await world.fetch("UPDATE channels SET is_destination = false WHERE is_destination")
    await world.fetch("UPDATE channels SET is_destination = true WHERE telegram_id = $1", other)
    await recover(world, "--account", B)
    for _ in range(3):
        await world.run("run", "--once", *ONE)
    (row,) = await world.fetch("SELECT state, reason FROM archive_sets")
    assert (row["state"], row["reason"]) == ("failed", "its destination is gone: no account can read it")


@pytest.mark.parametrize(
    "kill", ["", "telegram.channels.DeleteMessages:after:1", "db.uploads.give_up:after:1"]
)
async def test_an_upload_whose_source_is_gone_takes_back_what_it_sent_and_fails_its_set(world, kill):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=telegram.messages.SendMedia:after:2")
    assert ended == {"signal": 9}
    newest = [m["id"] for m in await world.admin.messages(world.sources[0])][-1]
    await world.admin.delete_messages(world.sources[0], [newest])
    if kill:
        assert await world.run("run", "--once", *ONE, faults=f"kill={kill}") == {"signal": 9}
    for _ in range(3):
        await world.run("run", "--once", *ONE)
    assert await _standing(world) == []
    (row,) = await world.fetch("SELECT state, reason FROM archive_sets")
    # Whoever sees it first says so: the upload that fetches it again, or the scan that hears of the deletion.
    assert row["state"] in ("failed", "skipped")
    assert "gone from" in row["reason"]
    (upload,) = await world.fetch("SELECT state FROM uploads")
    assert upload["state"] == "abandoned"


async def _restore_backup(world) -> None:
    """A backup from before the uploads takes the database's place."""
    for table in (
        "previews",
        "package_files",
        "package_originals",
        "package_parts",
        "upload_parts",
        "uploads",
    ):
        await world.fetch(f"DELETE FROM {table}")
    await world.fetch("UPDATE archive_sets SET state = 'ready', package_id = NULL")
    await world.fetch("DELETE FROM packages")


async def test_a_run_on_an_older_database_publishes_nothing_twice(world):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.post_archive(world.sources[0])
    await world.drain()
    before = await _standing(world)
    await _restore_backup(world)
    await world.drain()
    assert await _standing(world) == before
    assert await _states(world) == ["indexed", "indexed"]
    await world.check_invariants()


async def test_messages_that_no_row_knows_are_adopted_and_a_persons_copy_is_only_reported(world):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    path = await world.post_archive(world.sources[0])
    await world.drain(*ONE)
    await _restore_backup(world)
    listed = await world.admin.messages(world.destination)
    (caption,) = [message["text"] for message in listed if message["file_name"] == path.name]
    await world.admin.post_document(world.destination, path, "copy.zip", caption=caption, by=B)

    before = await _standing(world)
    found = await recover(world)
    assert found["counts"]["message"] == {"adopted": 2, "not ours": 1}
    assert "message" not in (await recover(world))["counts"], "what was told is told once"
    assert (await recover(world, "--full"))["counts"]["message"] == {"not ours": 1}
    assert await _standing(world) == before, "nobody deletes on suspicion"
    assert await world.run("run", "--once") == {"exit": 0}
    assert await _standing(world) == before, "what is adopted is not published again"
    assert await _states(world) == ["indexed", "indexed"]
    (row,) = await world.fetch("SELECT count(*) AS n FROM packages WHERE metadata = 'complete'")
    assert row["n"] == 2


async def test_beside_a_running_fleet_a_worker_looks_and_the_command_reports_it(world):
    await world.post_archive(world.sources[0])
    await world.drain()
    pid = world.workers.start("run", env=world.env())
    leased = "SELECT 1 FROM accounts WHERE worker_id IS NULL OR lease_until IS NULL"
    while await world.fetch(leased):  # noqa: ASYNC110 - another process has no event to wait for
        await asyncio.sleep(0.1)
    found = await recover(world)
    os.kill(pid, signal.SIGTERM)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}
    assert found["counts"]["account"] == {"left to its worker": 2}
    assert found["counts"]["package"] == {"messages standing": 1}
