"""Messages that an account may not see are never taken for gone, whatever it is asked to put right."""

import asyncio

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
