"""``worker verify``: the destination against the database, both ways, and nothing is changed."""

import json
import os
import zipfile

import pytest
from world import PHONES, open_world

MIB = 1024 * 1024


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "1"
        path = tmp_path / "split.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("noise.bin", os.urandom(2 * MIB))
        await opened.admin.post_document(opened.sources[0], path, "Split.zip")
        await opened.post_archive(opened.sources[0])
        ended = await opened.run("run", "--once", "--account", PHONES[0])
        assert ended == {"exit": 0}, opened.workers.logs[-1].read_text()
        yield opened


async def _verify(world, *options):
    ended = await world.run("verify", "--json", *options)
    text = world.workers.logs[-1].read_text()
    (report,) = json.loads(text[text.index("{\n") :])["channels"]
    return ended["exit"], report


async def _messages(world):
    return [m for m in await world.admin.messages(world.destination) if m["document_id"] and not m["deleted"]]


async def test_a_library_in_order_is_called_so_bytes_included(world):
    before = await _messages(world)
    code, report = await _verify(world)
    assert (code, report["packages"], report["messages"], report["marked"]) == (0, 2, 4, 4)
    assert (report["findings"], report["bytes_read"]) == ([], 0)
    code, report = await _verify(world, "--full")
    assert (code, report["findings"]) == (0, [])
    assert report["bytes_read"] > 2 * MIB
    code, report = await _verify(world, "--sample", "1")
    assert (code, report["packages"]) == (0, 1)
    assert await _messages(world) == before


async def test_what_is_missing_changed_or_unknown_is_named_and_left_as_it_is(world, tmp_path):
    first, *_, last = await _messages(world)
    await world.admin.delete_messages(world.destination, [last["id"]])
    double = await world.admin.repost(
        world.destination, first["document_id"], caption=first["text"], by=PHONES[0]
    )
    other = tmp_path / "other.zip"
    other.write_bytes(b"x" * first["size"])
    stranger = await world.admin.post_document(world.destination, other, "s.zip", caption=first["text"])
    split = "SELECT id FROM packages WHERE part_count > 1"
    unknown = [
        row["message_id"]
        for row in await world.fetch(
            f"DELETE FROM package_parts WHERE ordinal = 1 AND package_id = ({split}) RETURNING message_id"
        )
    ]
    before = await _messages(world)
    code, report = await _verify(world)
    assert code == 1
    assert {(f["kind"], f["message"]) for f in report["findings"]} == {
        ("missing", last["id"]),
        ("broken", None),
        *(("doubled", number) for number in [*unknown, double["message_id"]]),
    }
    assert report["counts"] == {"missing": 1, "broken": 1, "doubled": 2}
    assert [item["message"] for item in report["not_ours"]] == [stranger["message_id"]]
    assert await _messages(world) == before
    rows = await world.fetch("SELECT state FROM packages")
    assert [row["state"] for row in rows] == ["published", "published"]

    assert await world.run("verify") == {"exit": 1}
    assert "put it right with: worker recover" in world.workers.logs[-1].read_text()


async def test_a_byte_that_changed_is_found_by_reading_all_of_them(world):
    document = (await _messages(world))[0]["document_id"]
    (blob,) = (
        path
        for path in (world.folder / "telegram").rglob("*")
        if path.is_file() and path.name == str(document)
    )
    with blob.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)[0]
        file.seek(1000)
        file.write(bytes([byte ^ 1]))
    assert (await _verify(world))[0] == 0
    code, report = await _verify(world, "--full")
    assert (code, [f["kind"] for f in report["findings"]]) == (1, ["corrupt"])


async def test_a_message_that_is_being_published_is_no_finding(world):
    await world.post_archive(world.sources[0])
    killed = await world.run(
        "run", "--once", "--account", PHONES[0], faults="kill=telegram.messages.SendMedia:after:1"
    )
    assert killed == {"signal": 9}
    assert len(await _messages(world)) == 5
    await world.until_buried()
    code, report = await _verify(world)
    assert (code, report["marked"], report["findings"]) == (0, 5, [])
