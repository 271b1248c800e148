"""An upload that nobody can finish: a person ends it, and another posting of the same bytes goes on."""

import asyncio
import os
import signal

import pytest
from postings import posted_sets
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


async def _strand(world) -> None:
    """A has applied part 2 of 3, has not heard of it, and is banned; B does not read the source."""
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    rule = await world.admin.add_rule("messages.sendMedia", "mute", nth=2)
    pid = world.workers.start("run", "--once", "--account", A, env=world.env())
    await world.until_hit(rule)
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(world.workers.wait, pid)
    await world.until_buried()
    await world.admin.kick(world.sources[0], B)
    await world.forget_membership(B, world.sources[0])
    await world.admin.ban_account(A)
    await world.fetch("UPDATE accounts SET state = 'banned' WHERE phone = $1", A)


async def _standing(world) -> list[dict]:
    messages = [m for m in await world.admin.messages(world.destination) if m["document_id"]]
    return [m for m in messages if not m["deleted"]]


async def _check_published_once(world) -> None:
    """Every part in order, once, with the bytes that were posted, and each known to the package."""
    posted = await posted_sets(world.admin, world.sources)
    found = world.contents.check(await _standing(world), world.contents.expected(posted))
    ((_, messages),) = found.items()
    known = await world.fetch("SELECT message_id FROM package_parts ORDER BY ordinal")
    assert [row["message_id"] for row in known] == messages
    assert len(messages) == 3


async def _states(world) -> list[tuple]:
    return [tuple(row) for row in await world.fetch("SELECT state, reason FROM archive_sets ORDER BY id")]


async def test_a_person_ends_what_nobody_can_finish_and_the_same_bytes_from_elsewhere_go_on(world):
    await _strand(world)
    assert await world.run("sets", "skip", "1") == {"exit": 2}
    assert "worker recover --give-up 1" in world.workers.logs[-1].read_text()
    assert await world.run("run", "--once", "--account", B) == {"exit": 0}
    assert "end the upload: worker recover --give-up 1" in world.workers.logs[-1].read_text()
    found = await recover(world, "--give-up", "1")
    assert found["counts"]["upload"] == {"taken over": 1, "given up": 1}
    assert await _standing(world) == [], "what was sent is taken back, the part nobody knew of as well"
    ((state, reason),) = await _states(world)
    assert state == "failed"
    assert reason.startswith("given up by ")
    # The content is free.
    await world.admin.post_document(world.sources[1], world.folder / "archive-1.zip", "copy.zip")
    await world.drain("--account", B)
    assert [state for state, _ in await _states(world)] == ["failed", "indexed"]
    await _check_published_once(world)


async def test_what_nobody_may_see_is_left_over_and_taken_back_by_the_first_who_sees_it(world):
    await _strand(world)
    await world.admin.kick(world.destination, B)
    found = await recover(world, "--give-up", "1")
    (upload,) = [item["outcome"] for item in found["listed"] if item["kind"] == "upload"]
    assert upload.startswith("given up: given up by ")
    assert "1 of its messages are left over (no account reads the destination)" in upload
    assert len(await _standing(world)) == 2
    # Let in again, B finds the part that nobody had seen before it publishes the same bytes itself.
    await world.admin.join(world.destination, B, admin=True)
    await world.admin.post_document(world.sources[1], world.folder / "archive-1.zip", "copy.zip")
    await world.drain("--account", B)
    assert [state for state, _ in await _states(world)] == ["failed", "indexed"]
    await _check_published_once(world)


@pytest.mark.long
async def test_what_may_be_seen_and_not_deleted_is_left_over_until_somebody_may(world):
    await _strand(world)
    await world.admin.kick(world.destination, B)
    await world.admin.join(world.destination, B)
    found = await recover(world, "--give-up", "1")
    ended = [item["outcome"] for item in found["listed"] if item["outcome"].startswith("given up")]
    assert (
        "2 of its messages are left over (channels.DeleteMessages: 403 MESSAGE_DELETE_FORBIDDEN)" in ended[0]
    )
    assert [state for state, _ in await _states(world)] == ["failed"]
    await world.admin.kick(world.destination, B)
    await world.admin.join(world.destination, B, admin=True)
    first, _ = await _standing(world)
    await world.admin.delete_messages(world.destination, [first["id"]])
    found = await recover(world)
    assert found["counts"]["message"] == {"removed": 1, "gone already": 1}
    assert world.workers.logs[-1].read_text().count('"message.removed"') == 1
    assert await _standing(world) == []
