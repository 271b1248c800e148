"""``worker rebuild``: every package again, from the destination's own messages."""

import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from world import PHONES, open_world

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from archive_samples import build

MIB = 1024 * 1024
RUN = ("run", "--once", "--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    """A split zip, a set of RAR volumes and a zip under a very long name, published."""
    async with open_world(tmp_path, database_url, calm=True) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "1"
        opened.originals = {}
        split = tmp_path / "split.zip"
        with zipfile.ZipFile(split, "w") as archive:
            archive.writestr("noise.bin", os.urandom(2 * MIB))
        volumes = build("rar5_part_volumes", tmp_path / "volumes").files
        assert len(volumes) > 1
        long = tmp_path / "long.zip"
        with zipfile.ZipFile(long, "w") as archive:
            archive.writestr("a.txt", b"a")
        posted = [
            (split, "Split.zip"),
            *((path, path.name) for path in volumes),
            (long, "very long " * 30 + "name.zip"),
        ]
        for path, name in posted:
            await opened.admin.post_document(opened.sources[0], path, name)
            opened.originals[name] = path.read_bytes()
        for _ in range(2):
            ended = await opened.run(*RUN)
            assert ended == {"exit": 0}, opened.workers.logs[-1].read_text()
        assert len(await _packages(opened)) == 3, opened.workers.logs[-1].read_text()
        yield opened


async def _packages(world):
    rows = await world.fetch(
        "SELECT content_hash, file_name, part_count, file_size FROM packages ORDER BY file_size"
    )
    return [tuple(row) for row in rows]


async def _rebuild(world):
    ended = await world.run("rebuild", "--json")
    text = world.workers.logs[-1].read_text()
    (report,) = json.loads(text[text.index("{\n") :])["channels"]
    return ended["exit"], report


async def _fetch_all(world, folder):
    """Every file of every package, by its hash."""
    for row in await world.fetch("SELECT id FROM packages"):
        ended = await world.run("fetch", str(row["id"]), "-o", str(folder / str(row["id"])))
        assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    return {
        hashlib.sha256(path.read_bytes()).digest(): path.name
        for path in folder.rglob("*")
        if path.is_file() and path.name[0] != "."
    }


async def test_an_empty_database_is_made_anew_and_nothing_is_downloaded_again(
    world, tmp_path, empty_database_url
):
    before = await _packages(world)
    fetched = await _fetch_all(world, tmp_path / "before")
    assert set(fetched) == {hashlib.sha256(body).digest() for body in world.originals.values()}
    messages = await world.admin.messages(world.destination)
    await world.forget_everything(empty_database_url)

    code, report = await _rebuild(world)
    assert (code, report["packages"], report["known"], report["left_out"]) == (0, 3, 0, [])
    # A name that the marker had no room for comes back as it was sent: cleaned, and not longer than allowed.
    assert [row[:1] + row[2:] for row in await _packages(world)] == [row[:1] + row[2:] for row in before]
    assert sorted(row[1] for row in await _packages(world))[:1] == ["Split.zip"]
    assert await _fetch_all(world, tmp_path / "after") == fetched

    code, again = await _rebuild(world)
    assert (code, again["packages"], again["known"]) == (0, 0, report["marked"])

    record = tmp_path / "record"
    for _ in range(2):
        ended = await world.run(*RUN, faults=f"record={record}")
        assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    assert [place for place in record.read_text().split() if place.startswith("workspace.part")] == []
    assert await world.admin.messages(world.destination) == messages
    states = {row["state"] for row in await world.fetch("SELECT state FROM archive_sets")}
    assert states == {"duplicate"}
    rows = await world.fetch("SELECT metadata, file_count > 0 FROM packages")
    assert {tuple(row) for row in rows} == {("complete", True)}


async def test_what_is_incomplete_or_doubled_is_left_out_and_told(world, tmp_path, empty_database_url):
    published = [
        m for m in await world.admin.messages(world.destination) if m["file_name"] == "Split.zip.002"
    ]
    await world.admin.delete_messages(world.destination, [published[0]["id"]])
    whole = next(
        m for m in await world.admin.messages(world.destination) if (m["file_name"] or "").startswith("very")
    )
    double = await world.admin.repost(
        world.destination, whole["document_id"], caption=whole["text"], by=PHONES[0]
    )
    await world.forget_everything(empty_database_url)
    code, report = await _rebuild(world)
    assert (code, report["packages"], report["left_out_count"]) == (1, 2, 2)
    left_out = {tuple(item["messages"]): item["why"] for item in report["left_out"]}
    assert "by other messages" in left_out.pop((double["message_id"],))
    ((ids, why),) = left_out.items()
    assert len(ids) == 2
    assert why.endswith("bytes are there")
