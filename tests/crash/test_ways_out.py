"""What waits for a person names a command that leads out of it, and the command does."""

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


async def _begin(world, account: str = A) -> None:
    """The account has applied part 2 of 3, has not heard of it, and its worker is dead."""
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    killed = "kill=telegram.messages.SendMedia:after:2"
    assert await world.run("run", "--once", "--account", account, faults=killed) == {"signal": 9}


async def _reason(world, set_id: int = 1) -> str:
    ((reason,),) = await world.fetch("SELECT reason FROM archive_sets WHERE id = $1", set_id)
    return reason or ""


async def _standing(world) -> list[dict]:
    messages = [m for m in await world.admin.messages(world.destination) if m["document_id"]]
    return [m for m in messages if not m["deleted"]]


async def test_an_upload_whose_source_is_closed_to_its_account_names_the_command_that_ends_it(world):
    await _begin(world)
    await world.admin.kick(world.sources[0], A)
    assert await world.run("run", "--once", "--account", A) == {"exit": 0}
    assert "worker recover --give-up 1" in await _reason(world)
    await recover(world, "--give-up", "1")
    assert await _standing(world) == []


async def test_an_upload_that_telegram_refuses_names_the_command_that_ends_it(world):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.admin.add_rule("messages.sendMedia", "error", code=400, text="MEDIA_INVALID", count=0)
    for _ in range(2):
        assert await world.run("run", "--once", "--account", A) == {"exit": 0}
    assert "MEDIA_INVALID" in await _reason(world)
    assert "worker recover --give-up 1" in await _reason(world)


async def test_what_a_worker_at_work_sees_no_more_is_taken_back_by_an_account_that_does(world):
    await _begin(world)
    await world.admin.kick(world.destination, A)
    await world.admin.kick(world.sources[0], B)
    pid = world.workers.start("run", env=world.env(WORKER_FLEET__CYCLE_SECS="0.5"))
    try:
        await world.until("SELECT coalesce(bool_or(reason LIKE '%may not read%'), false) FROM archive_sets")
        assert "worker recover --give-up 1" in await _reason(world)
        await recover(world, "--give-up", "1")
        await world.until("SELECT bool_and(state = 'failed') FROM archive_sets")
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(world.workers.wait, pid)
    assert await _standing(world) == [], "the part that nobody had heard of as well"
    assert await world.fetch("SELECT 1 FROM uploads WHERE state = 'open'") == []


async def _publish_to_hidden_group(world) -> None:
    """A group that shows newcomers nothing of what was there before; A sees all of it."""
    made = await world.admin.create_channel("Annex", broadcast=False, hidden_history=True, admins=[A])
    world.destination = made["channel_id"]
    await world.fetch("UPDATE channels SET is_destination = false")
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES ($1, 'Annex', 'supergroup', true)",
        world.destination,
    )


async def test_what_nobody_at_work_sees_is_ended_beside_a_worker_and_vouched_for_by_a_person(world):
    await _publish_to_hidden_group(world)
    await world.admin.join(world.destination, B, admin=True)
    await _begin(world, B)
    await world.fetch("UPDATE accounts SET state = 'disabled' WHERE phone = $1", A)
    # B comes back as a newcomer, who does not see what it has sent.
    await world.admin.kick(world.destination, B)
    await world.admin.join(world.destination, B, admin=True)
    pid = world.workers.start("run", env=world.env(WORKER_FLEET__CYCLE_SECS="0.5"))
    try:
        await world.until("SELECT coalesce(bool_or(reason LIKE '%does not see%'), false) FROM archive_sets")
        await recover(world, "--give-up", "1")
        await world.until("SELECT bool_and(state = 'failed') FROM archive_sets")
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(world.workers.wait, pid)
    before = len(await _standing(world))
    await world.admin.post_document(world.sources[1], world.folder / "archive-1.zip", "copy.zip")
    vouched = ("channels", "destination", str(world.destination), "--nothing-hidden")
    assert await world.run(*vouched) == {"exit": 0}
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    reason = await _reason(world, 2)
    assert "it is not known yet what that left in Annex, of which no account at work sees enough" in reason
    assert reason.endswith("run: worker recover --give-up 2")
    foretold = await recover(world, "--give-up", "2", "--dry-run")
    assert foretold["counts"]["upload"] == {"to be looked for no longer": 1}
    await recover(world, "--give-up", "2")
    await world.drain("--account", B)
    assert len(await _standing(world)) == before + 3


_INSERT = """
    WITH made AS (
        INSERT INTO packages (content_hash, file_name, file_size, archive_type, dest_channel_id,
            dest_message_id, part_count, metadata)
        SELECT sha256($2), 'kit.zip', 10, 'zip', c.id, $1, 1, 'complete' FROM channels c
        WHERE c.is_destination RETURNING id, dest_channel_id
    )
    INSERT INTO package_parts (package_id, ordinal, dest_channel_id, message_id, file_name, byte_offset,
        byte_length)
    SELECT id, 0, dest_channel_id, $1, 'kit.zip', 0, 10 FROM made
"""


async def _lose_packages(world) -> None:
    """Three packages of which nothing is left, noticed by the account that sees everything."""
    (world.folder / "kit.zip").write_bytes(b"0123456789")
    filled = await world.admin.fill_channel(
        world.destination, 3, path=world.folder / "kit.zip", by=B, text="kit {}"
    )
    for message_id in filled["message_ids"]:
        await world.fetch(_INSERT, message_id, bytes([message_id]))
    await world.admin.delete_messages(world.destination, filled["message_ids"])
    found = await recover(world, "--account", B)
    assert found["counts"]["package"]["needs you"] == 1


async def test_a_person_is_believed_by_the_account_that_sees_the_destination_whoever_runs_it(world):
    await _lose_packages(world)
    await world.admin.kick(world.destination, A)
    pid = world.workers.start("run", env=world.env(WORKER_FLEET__CYCLE_SECS="0.5"))
    try:
        await world.until("SELECT count(*) = 2 FROM accounts WHERE worker_id IS NOT NULL")
        await recover(world, "--accept-missing")
        assert await world.fetch("SELECT 1 FROM channels WHERE missing_since IS NOT NULL") == []
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(world.workers.wait, pid)
    assert await world.fetch("SELECT 1 FROM packages WHERE state = 'published'") == []


async def test_a_destination_that_nobody_sees_whole_names_what_helps_there(world):
    await _lose_packages(world)
    await world.admin.kick(world.destination, B)
    await world.fetch("UPDATE accounts SET state = 'disabled' WHERE phone = $1", A)
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert await world.run("status", "--json") == {"exit": 0}
    said = world.workers.logs[-1].read_text()
    assert "needs you: 3 of 3 packages are missing from Library at once" in said
    assert "no account at work sees all of it" in said
    assert "worker channels destination CHANNEL" in said
    assert "--accept-missing" not in said
    found = await recover(world, "--accept-missing")
    (told,) = [item["outcome"] for item in found["listed"] if item["kind"] == "package"]
    assert told.startswith("not accepted: no account that is logged in can read where this lies")


async def test_a_destination_that_cannot_be_looked_through_is_named_and_ends_a_single_run(world):
    await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.getHistory", "error", code=400, text="CHAT_INVALID", count=0)
    assert await world.run("run", "--once", "--account", A) == {"exit": 0}
    said = world.workers.logs[-1].read_text()
    assert "Library cannot be looked through" in said
    assert "worker channels destination CHANNEL" in said
    await world.admin.clear_rules()
    await world.drain("--account", A)
    assert len(await _standing(world)) == 1
