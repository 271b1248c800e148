"""Marked messages of other people: never a package, never a part, never a reason for a duplicate, and named."""

import hashlib
import json
import os

import pytest
from world import PHONES, SECRET_KEY, open_world

from worker.domain.marker import Marker, find_marker

MIB = 1024 * 1024
STRANGER = "+10000000009"
ONE = ("--account", PHONES[0])
RUN = ("run", "--once", *ONE)


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "1"
        await opened.admin.create_account(STRANGER, "Mallory")
        yield opened


async def _publish_to_a_group(world) -> None:
    """A supergroup that the stranger is in takes the destination's place."""
    made = await world.admin.create_channel("Group", broadcast=False, admins=list(PHONES), members=[STRANGER])
    world.destination = made["channel_id"]
    await world.fetch("UPDATE channels SET is_destination = false")
    await _choose(world)


async def _choose(world) -> None:
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_destination) VALUES ($1, 'Group', 'supergroup', true)"
        " ON CONFLICT (telegram_id) DO UPDATE SET is_destination = true",
        world.destination,
    )


def _file(world, name: str, body: bytes):
    path = world.folder / name
    path.write_bytes(body)
    return path


def _forged(body: bytes, **fields) -> str:
    marked = {
        "content_hash": hashlib.sha256(body).digest(),
        "total_size": len(body),
        "offset": 0,
        "length": len(body),
        "file_index": 0,
        "file_size": len(body),
        "file_name": "a.zip",
        "source_channel": 1,
        "source_message": 1,
        "source_document": 1,
    }
    return Marker(**(marked | fields)).line()


async def _post(world, body: bytes, caption: str, by: str = STRANGER) -> int:
    path = _file(world, f"posted-{len(world.workers.logs)}-{len(caption)}.zip", body)
    posted = await world.admin.post_document(world.destination, path, "a.zip", caption=caption, by=by)
    return posted["message_id"]


async def _messages(world, by: str = PHONES[0]) -> list[dict]:
    messages = await world.admin.messages(world.destination)
    return [m for m in messages if m["document_id"] and not m["deleted"] and m["phone"] == by.lstrip("+")]


async def _packages(world) -> dict[bytes, list[int]]:
    rows = await world.fetch(
        "SELECT content_hash, array_agg(message_id ORDER BY ordinal) AS ids FROM packages"
        " JOIN package_parts ON package_id = id WHERE state = 'published' GROUP BY content_hash"
    )
    return {row["content_hash"]: row["ids"] for row in rows}


async def _told(world, *argv: str, code: int = 0) -> dict:
    ended = await world.run(*argv, "--json")
    text = "\n" + world.workers.logs[-1].read_text()
    assert ended == {"exit": code}, text
    return json.loads(text[text.rindex("\n{\n") :])


def _named(report: dict) -> set[int]:
    (channel,) = report["channels"]
    assert channel["not_ours_count"] == len(channel["not_ours"])
    return {number for item in channel["not_ours"] for number in item.get("messages", [item.get("message")])}


async def test_w1_in_a_group_no_message_of_a_stranger_counts_whatever_it_copies(world, empty_database_url):
    await _publish_to_a_group(world)
    path = await world.post_archive(world.sources[0], size=3 * MIB // 2)
    source = (await world.admin.messages(world.sources[0]))[-1]
    body = path.read_bytes()
    said = {
        "source_channel": world.sources[0],
        "source_message": source["id"],
        "source_document": source["document_id"],
    }
    strangers = {
        await _post(world, b"x" * 777, _forged(b"x" * 777, **said)),
        await _post(world, b"y" * 777, _forged(b"y" * 777).replace(" 1/1/1 ", f" {10**20}/1/1 ")),
    }

    assert await world.run(*RUN) == {"exit": 0}, world.workers.logs[-1].read_text()
    ours = await _messages(world)
    assert await _packages(world) == {hashlib.sha256(body).digest(): [m["id"] for m in ours]}
    assert [row["state"] for row in await world.fetch("SELECT state FROM archive_sets")] == ["indexed"]

    # Everything that can be copied: the caption under other bytes of that length, the whole message.
    strangers.add(await _post(world, b"z" * ours[0]["size"], ours[0]["text"]))
    for message in ours:
        copied = await world.admin.repost(
            world.destination, message["document_id"], caption=message["text"], by=STRANGER
        )
        strangers.add(copied["message_id"])
    assert _named(await _told(world, "verify")) == strangers
    found = await _told(world, "recover", *ONE)
    assert found["counts"]["message"] == {"not ours": 4, "marked without a code": 1}

    await world.forget_everything(empty_database_url)
    await world.fetch("UPDATE channels SET is_destination = false")
    await _choose(world)
    world.settings["WORKER_SECRET_KEY"] = f"{'B' * 42}A= {SECRET_KEY}"
    assert await world.run("accounts", "rotate-key") == {"exit": 0}, world.workers.logs[-1].read_text()
    retired = next(w for w in world.workers.logs[-1].read_text().split() if w.startswith("marker:"))
    world.settings["WORKER_SECRET_KEY"] = f"{'B' * 42}A= {retired}"
    rebuilt = await _told(world, "rebuild", code=1)
    assert await _packages(world) == {hashlib.sha256(body).digest(): [m["id"] for m in ours]}
    (left_out,) = rebuilt["channels"][0]["left_out"]
    assert "--accept-old-markers" in left_out["why"]
    assert _named(rebuilt) | set(left_out["messages"]) == strangers
    assert {m["id"] for m in await _messages(world, by=STRANGER)} == strangers, "nothing of theirs is deleted"


async def test_w1_what_a_foreign_administrator_posts_above_the_floor_is_no_part_of_an_upload(world):
    await world.admin.join(world.destination, STRANGER, admin=True)
    await world.post_archive(world.sources[0], size=3 * MIB // 2)
    killed = await world.run(*RUN, faults="kill=telegram.messages.SendMedia:before:2")
    assert killed == {"signal": 9}
    (first,) = await _messages(world)
    marker = find_marker(first["text"])
    rest = marker.total_size - marker.length
    for text in (first["text"], first["text"].replace("af2", "af1").replace(f" {marker.code}", "")):
        forged = text.replace(f" 0+{marker.length} ", f" {marker.length}+{rest} ")
        assert find_marker(forged).offset == marker.length
        await _post(world, b"x" * rest, forged)

    await world.drain(*ONE)
    ours = await _messages(world)
    assert await _packages(world) == {marker.content_hash: [m["id"] for m in ours]}
    assert sum(m["size"] for m in ours) == marker.total_size
    assert len(await _messages(world, by=STRANGER)) == 2


@pytest.mark.parametrize("place", ["channel", "group"])
async def test_what_was_marked_before_codes_counts_by_its_sender_and_its_bytes(world, place):
    if place == "group":
        await _publish_to_a_group(world)
        # The accounts find it.
        assert await world.run("run", "--once") == {"exit": 0}
    good, bad = os.urandom(5000), b"other bytes"
    await _post(world, good, _forged(good), by=PHONES[1])
    wrong = await _post(world, bad, _forged(bad, content_hash=bytes(32)), by=PHONES[1])

    report = await _told(world, "rebuild", code=0 if place == "group" else 1)
    if place == "channel":
        # Who posted in a channel cannot be told.
        assert await _packages(world) == {}
        assert len(report["channels"][0]["left_out"]) == 2
        report = await _told(world, "rebuild", "--accept-old-markers")
    assert list(await _packages(world)) == [hashlib.sha256(good).digest()]
    assert _named(report) == {wrong}
    # What the marker says of the source is believed of our own accounts only.
    rows = await world.fetch("SELECT document_id FROM package_originals")
    assert [row["document_id"] for row in rows] == [1 if place == "group" else 0]
