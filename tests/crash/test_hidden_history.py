"""Messages that an account may not see are never taken for gone, whatever it is asked to put right."""

import asyncio
import json
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
    """The destination is a group that shows newcomers nothing of what was there before."""
    async with open_world(tmp_path, database_url) as opened:
        opened.settings |= SPLIT
        made = await opened.admin.create_channel("Annex", broadcast=False, hidden_history=True, admins=[A])
        opened.destination = made["channel_id"]
        await opened.fetch("UPDATE channels SET is_destination = false")
        await opened.fetch(
            "INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES ($1, 'Annex', 'supergroup', true)",
            opened.destination,
        )
        yield opened


async def _standing(world) -> list[str]:
    messages = await world.admin.messages(world.destination)
    return [f"+{m['phone']}" for m in messages if m["document_id"] and not m["deleted"]]


async def _status(world) -> dict:
    assert await world.run("status", "--json") == {"exit": 0}
    text = "\n" + world.workers.logs[-1].read_text()
    return json.loads(text[text.rindex("\n{\n") :])


async def _waits(world) -> list[str]:
    return [item["why"] for item in (await _status(world))["sync"]["waiting"] if item["kind"] == "account"]


async def test_an_account_that_does_not_see_what_a_backup_lacks_waits_for_the_look_of_one_that_does(
    world, empty_database_url
):
    await world.post_archive(world.sources[0])
    await world.drain("--account", A)
    await world.admin.join(world.destination, B, admin=True)
    await world.forget_everything(empty_database_url)

    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await _standing(world) == [A]
    (why,) = await _waits(world)
    assert "sees Annex only from message" in why
    assert "account 1 does so as soon as a worker runs it" in why

    await world.drain("--account", A)
    assert await _waits(world) == []
    await world.post_archive(world.sources[0])
    await world.drain("--account", B)
    assert await _standing(world) == [A, B]


async def test_an_account_that_has_looked_looks_again_for_one_that_joined_since(world):
    looking = world.workers.start("run", "--account", A, env=world.env(WORKER_FLEET__CYCLE_SECS="0.5"))
    await world.until("SELECT looked_to > 0 FROM channels WHERE is_destination")
    await world.admin.post_text(world.destination, "before B's time")
    await world.admin.join(world.destination, B, admin=True)
    private = await world.admin.create_channel("Private", members=[B])
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Private', 'channel', true)",
        private["channel_id"],
    )
    await world.post_archive(private["channel_id"])
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    await world.until("SELECT looked_to > 1 FROM channels WHERE is_destination")
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await _standing(world) == [B]
    os.kill(looking, signal.SIGTERM)
    assert await asyncio.to_thread(world.workers.wait, looking) == {"exit": 0}


async def test_a_fleet_that_sees_only_part_of_its_destination_publishes_once_a_person_has_vouched_for_the_rest(
    world,
):
    await world.fetch("UPDATE accounts SET state = 'disabled' WHERE phone = $1", A)
    await world.admin.post_text(world.destination, "before B's time")
    await world.admin.join(world.destination, B, admin=True)
    await world.post_archive(world.sources[0])
    assert await world.run("run", "--once") == {"exit": 0}
    assert await _standing(world) == []
    status = await _status(world)
    command = f"channels destination {world.destination} --nothing-hidden"
    assert any(command in item["why"] for item in status["sync"]["waiting"]), status["sync"]

    assert await world.run(*command.split()) == {"exit": 0}
    for published in ([B], [B, B]):
        await world.drain()
        assert await _standing(world) == published
        await world.post_archive(world.sources[0])


async def test_what_an_account_may_not_see_is_neither_withdrawn_nor_missed(world):
    await world.post_archive(world.sources[0])
    await world.drain("--account", A)
    await world.admin.join(world.destination, B, admin=True)
    found = await recover(world, "--account", B)
    assert "withdrawn" not in found["counts"].get("package", {})
    (package,) = await world.fetch("SELECT state FROM packages")
    assert package["state"] == "published"

    for command in ("verify", "rebuild"):
        assert await world.run(command) == {"exit": 0}, world.workers.logs[-1].read_text()
    await world.fetch("UPDATE accounts SET state = 'disabled' WHERE phone = $1", A)
    for command in ("verify", "rebuild"):
        assert await world.run(command) == {"exit": 2}
        assert "no account that is logged in sees all of its messages" in world.workers.logs[-1].read_text()
    assert await _standing(world) == [A]


async def test_a_dry_run_that_turns_out_to_see_too_little_keeps_that_to_itself(world):
    await world.post_archive(world.sources[0])
    await world.drain("--account", A)
    await world.admin.join(world.destination, B, admin=True)
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    await world.admin.post_text(world.destination, "what B does see")
    # As of an account that was shut out and let in again since it was asked.
    await world.fetch("UPDATE memberships SET visible_from = 0")
    found = await recover(world, "--dry-run", "--account", B)
    assert found["counts"]["package"] == {"not judged": 1}
    assert "message" not in found["counts"]
    (row,) = await world.fetch("SELECT DISTINCT visible_from FROM memberships")
    assert row["visible_from"] == 0


async def test_an_upload_whose_messages_its_account_cannot_see_any_more_is_not_sent_again(world):
    await world.admin.join(world.destination, B, admin=True)
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run(
        "run", "--once", "--account", B, faults="kill=telegram.messages.SendMedia:after:2"
    )
    assert ended == {"signal": 9}
    assert await _standing(world) == [B, B]
    # Shut out and let in again, B no longer sees what it sent, of which it had heard of one message only.
    await world.admin.kick(world.destination, B)
    await world.admin.join(world.destination, B, admin=True)
    for _ in range(2):
        assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await _standing(world) == [B, B]
    (row,) = await world.fetch("SELECT state, reason, attempts FROM archive_sets")
    assert (row["state"], row["attempts"]) == ("ready", 0)
    assert "does not see all that it has sent to Annex" in row["reason"]
    assert "recover --take-over" in row["reason"]

    assert await world.run("run", "--once", "--account", A) == {"exit": 0}
    (b,) = await world.fetch("SELECT id FROM accounts WHERE phone = $1", B)
    found = await recover(world, "--take-over", str(b["id"]))
    assert found["counts"]["upload"]["taken over"] == 1
    await world.drain("--account", A)
    assert await _standing(world) == [B, B, A]
    await world.check_invariants()


async def test_an_upload_whose_account_is_let_in_again_while_it_looks_for_its_messages_sends_none_twice(
    world,
):
    await world.admin.join(world.destination, B, admin=True)
    await world.admin.post_text(world.destination, "what B sees")
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    ended = await world.run(
        "run", "--once", "--account", B, faults="kill=telegram.messages.SendMedia:after:2"
    )
    assert ended == {"signal": 9}
    world.settings["WORKER_TELEGRAM__CALL_TIMEOUT_SECS"] = "60"
    looking = await world.admin.add_rule("messages.getHistory", "delay", seconds=None, account=B)
    going_on = world.workers.start("run", "--once", "--account", B, env=world.env())
    await world.until_hit(looking)
    await world.admin.kick(world.destination, B)
    await world.admin.join(world.destination, B, admin=True)
    await world.admin.lift_rule(looking)
    assert await asyncio.to_thread(world.workers.wait, going_on) == {"exit": 0}
    assert await _standing(world) == [B, B]
    (row,) = await world.fetch("SELECT state, reason, attempts FROM archive_sets")
    assert (row["state"], row["attempts"]) == ("ready", 0)
    assert "does not see all that it has sent to Annex" in row["reason"]


async def test_an_account_that_was_not_told_how_much_it_sees_publishes_nothing_beside_what_may_be_there(
    world,
):
    await world.post_archive(world.sources[0])
    await world.drain("--account", A)
    # An older backup takes the database's place.
    await world.fetch("UPDATE archive_sets SET state = 'ready', package_id = NULL, content_hash = NULL")
    for table in (
        "upload_parts",
        "uploads",
        "package_parts",
        "package_originals",
        "package_files",
        "packages",
    ):
        await world.fetch(f"DELETE FROM {table}")
    await world.admin.add_rule("channels.getFullChannel", "error", code=420, text="FLOOD_WAIT_3600", count=0)
    assert await world.run("run", "--once", "--account", A) == {"exit": 0}
    assert "is not known yet" in world.workers.logs[-1].read_text()
    assert await _standing(world) == [A]
