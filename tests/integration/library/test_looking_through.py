"""What a destination holds beyond all that is known is found before anything is published beside it."""

import asyncio
import hashlib
import json
import os
import signal

import pytest
from world import PHONES, open_world

from worker.domain.marker import Marker, with_code
from worker.domain.marker_code import Under, code_of, marker_key

ONE = ("--account", PHONES[0])
RUN = ("run", "--once", *ONE)
KEY = marker_key(bytes(32))


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


async def _standing(world) -> list[int]:
    messages = await world.admin.messages(world.destination)
    return [m["id"] for m in messages if m["document_id"] and not m["deleted"]]


async def _packages(world) -> dict[bytes, list[int]]:
    rows = await world.fetch(
        "SELECT content_hash, array_agg(message_id ORDER BY ordinal) AS ids FROM packages"
        " JOIN package_parts ON package_id = id WHERE state = 'published' GROUP BY content_hash"
    )
    return {row["content_hash"]: row["ids"] for row in rows}


async def _published_before(world, body: bytes, offset: int, length: int) -> int:
    """A message of ours with a part of this content, of which the database knows nothing."""
    window = world.folder / f"window-{offset}-{length}.bin"
    window.write_bytes(body[offset : offset + length])
    scratch = (await world.admin.create_channel("Scratch"))["channel_id"]
    made = await world.admin.post_document(scratch, window, "a.zip")
    digest = hashlib.sha256(body).digest()
    marker = Marker(digest, len(body), offset, length, 0, len(body), "a.zip", 1, 1, 1)
    under = Under(world.destination, 0, made["document_id"])
    caption = with_code(marker.line(), lambda written: code_of(KEY, written, under))
    posted = await world.admin.repost(world.destination, made["document_id"], caption=caption, by=PHONES[1])
    return posted["message_id"]


async def _recover(world, *argv: str) -> dict:
    ended = await world.run("recover", "--json", *ONE, *argv)
    text = "\n" + world.workers.logs[-1].read_text()
    assert ended == {"exit": 0}, text
    return json.loads(text[text.rindex("\n{\n") :])["counts"]


async def test_a_destination_is_read_to_its_end_before_anything_is_published_there(world):
    body = (await world.post_archive(world.sources[0])).read_bytes()
    await world.admin.fill_channel(world.destination, 10_001)
    there = await _published_before(world, body, 0, len(body))
    assert await world.run(*RUN) == {"exit": 0}, world.workers.logs[-1].read_text()
    assert await _standing(world) == [there]
    assert await _packages(world) == {hashlib.sha256(body).digest(): [there]}


async def test_a_look_that_was_killed_goes_on_below_what_it_has_adopted(world):
    first = (await world.post_archive(world.sources[0])).read_bytes()
    second = (await world.post_archive(world.sources[0])).read_bytes()
    half = len(first) // 2
    begin = await _published_before(world, first, 0, half)
    between = await _published_before(world, second, 0, len(second))
    end = await _published_before(world, first, half, len(first) - half)
    assert await world.run(*RUN, faults="kill=db.packages.adopt:after:1") == {"signal": 9}
    await world.drain(*ONE)
    assert await _standing(world) == [begin, between, end]
    assert await _packages(world) == {
        hashlib.sha256(first).digest(): [begin, end],
        hashlib.sha256(second).digest(): [between],
    }


async def test_a_look_that_is_told_to_stop_publishes_nothing_and_is_made_up_for(world):
    body = (await world.post_archive(world.sources[0])).read_bytes()
    there = await _published_before(world, body, 0, len(body))
    pid = world.workers.start(*RUN, env=world.env("stop=db.destinations.look_begun:after:1"))
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGCONT)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[-1].read_text()
    assert (await _standing(world), await _packages(world)) == ([there], {})
    await world.drain(*ONE)
    assert (await _standing(world), list((await _packages(world)).values())) == ([there], [[there]])


async def test_a_destination_that_is_chosen_while_a_set_is_fetched_is_looked_through_first(world):
    body = (await world.post_archive(world.sources[0])).read_bytes()
    other = (await world.admin.create_channel("Other", admins=list(PHONES)))["channel_id"]
    first, world.destination = world.destination, other
    there = await _published_before(world, body, 0, len(body))
    pid = world.workers.start(*RUN, env=world.env("stop=db.sets.claim:after:1"))
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    await world.fetch("UPDATE channels SET is_destination = false WHERE telegram_id = $1", first)
    await world.fetch("UPDATE channels SET is_destination = true WHERE telegram_id = $1", other)
    os.kill(pid, signal.SIGCONT)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[-1].read_text()
    await world.drain(*ONE)
    assert (await _standing(world), list((await _packages(world)).values())) == ([there], [[there]])


async def test_an_account_that_was_refused_while_it_looked_looks_once_it_is_let_in_again(world):
    world.settings["WORKER_FLEET__CYCLE_SECS"] = "0.5"
    body = (await world.post_archive(world.sources[0])).read_bytes()
    there = await _published_before(world, body, 0, len(body))
    pid = world.workers.start("run", *ONE, env=world.env("stop=db.channels.seen:after:1"))
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    await world.admin.kick(world.destination, PHONES[0])
    os.kill(pid, signal.SIGCONT)
    await world.until("SELECT EXISTS (SELECT FROM memberships WHERE NOT can_post AND NOT can_read)")
    await world.until("SELECT EXISTS (SELECT FROM archive_sets WHERE state = 'ready')")
    await world.admin.join(world.destination, PHONES[0], admin=True)
    await world.until("SELECT EXISTS (SELECT FROM packages)")
    os.kill(pid, signal.SIGTERM)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}, world.workers.logs[-1].read_text()
    assert (await _standing(world), list((await _packages(world)).values())) == ([there], [[there]])


async def test_recover_reads_above_what_it_settled_before_and_all_of_it_when_asked(world):
    body = (await world.post_archive(world.sources[0])).read_bytes()
    assert await world.run(*RUN) == {"exit": 0}
    await _published_before(world, body, 0, len(body))
    assert (await _recover(world))["message"] == {"doubled": 1}
    assert "message" not in await _recover(world)
    await _published_before(world, body, 0, len(body))
    assert (await _recover(world))["message"] == {"doubled": 1}
    assert (await _recover(world, "--dry-run", "--full"))["message"] == {"doubled": 2}


async def test_withdrawn_content_whose_messages_stand_is_not_published_beside_them(world):
    world.settings["WORKER_FLEET__REPUBLISH_DELETED"] = "true"
    await world.post_archive(world.sources[0])
    assert await world.run(*RUN) == {"exit": 0}
    there = await _packages(world)
    standing = await _standing(world)

    # A backup from between the loss of one set of messages and the sending of the next.
    await world.fetch("DELETE FROM upload_parts")
    await world.fetch("DELETE FROM uploads")
    await world.fetch("UPDATE packages SET state = 'withdrawn', withdrawn_at = now()")
    await world.fetch("UPDATE package_parts SET message_id = 1, document_id = 1")
    await world.fetch("UPDATE archive_sets SET state = 'ready', package_id = NULL")
    await world.drain(*ONE)
    assert (await _standing(world), await _packages(world)) == (standing, there)

    # One that was withdrawn although every message of it stands.
    await world.fetch("UPDATE packages SET state = 'withdrawn', withdrawn_at = now()")
    await world.fetch("UPDATE archive_sets SET state = 'ready', package_id = NULL")
    await world.drain(*ONE)
    assert (await _standing(world), await _packages(world)) == (standing, there)

    await world.fetch("UPDATE packages SET state = 'withdrawn', withdrawn_at = now()")
    await world.fetch(
        "UPDATE archive_sets SET state = 'skipped', package_id = NULL, reason = 'it was deleted from the destination'"
    )
    assert (await _recover(world, "--full"))["message"] == {"adopted": 1}
    await world.drain(*ONE)
    assert (await _standing(world), await _packages(world)) == (standing, there)
