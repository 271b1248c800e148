"""What is known about a package once it is published: listing, preview, creator, tags."""

import io
import zipfile

import pytest
from PIL import Image
from world import PHONES, open_world

ONE = ("run", "--once", "--account", PHONES[0])


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


def _picture(path, colour):
    Image.new("RGB", (900, 600), colour).save(path, "JPEG")
    return path


def _zip(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return path


def _jpeg(colour):
    out = io.BytesIO()
    Image.new("RGB", (700, 700), colour).save(out, "JPEG")
    return out.getvalue()


def _colour(jpeg):
    with Image.open(io.BytesIO(jpeg)) as image:
        assert (image.format, max(image.size)) == ("JPEG", 320)
        red, green, blue = image.resize((1, 1)).getpixel((0, 0))
    return "red" if red > 200 else "green" if green > 100 else "blue" if blue > 200 else "other"


async def _run(world):
    ended = await world.run(*ONE)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()


async def _previews(world):
    rows = await world.fetch(
        "SELECT p.file_name, v.kind, v.origin, v.jpeg FROM packages p LEFT JOIN previews v ON v.package_id = p.id"
    )
    return {row["file_name"]: row for row in rows}


async def test_p11_a_photo_of_the_posting_goes_before_one_near_in_time_and_before_one_inside(world, tmp_path):
    source, admin = world.sources[0], world.admin
    red, blue = _picture(tmp_path / "r.jpg", "red"), _picture(tmp_path / "b.jpg", "blue")
    album = await admin.post_photo(source, red, grouped_id=77)
    inside = _zip(tmp_path / "a.zip", cover_jpg=_jpeg("green"), a_txt=b"x")
    await admin.post_document(source, inside, "Album.zip", grouped_id=77)
    await admin.post_photo(source, blue)
    alone = _zip(tmp_path / "b.zip", cover_jpg=_jpeg("green"), b_txt=b"y")
    answered = await admin.post_document(world.sources[1], alone, "Reply.zip")
    reply = await admin.post_photo(world.sources[1], blue, reply_to=answered["message_id"])
    await _run(world)

    previews = await _previews(world)
    assert previews["Album.zip"]["kind"] == "posted"
    assert previews["Album.zip"]["origin"] == str(album["message_id"])
    assert _colour(previews["Album.zip"]["jpeg"]) == "red"
    assert previews["Reply.zip"]["origin"] == str(reply["message_id"])
    assert _colour(previews["Reply.zip"]["jpeg"]) == "blue"


async def test_p11_without_a_photo_a_picture_inside_is_taken_and_a_broken_photo_does_no_harm(world, tmp_path):
    source, admin = world.sources[0], world.admin
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8 not a picture")
    posted = await admin.post_document(
        source, _zip(tmp_path / "a.zip", cover_jpg=_jpeg("green"), c_txt=b"z"), "Alone.zip"
    )
    await admin.post_photo(source, broken, reply_to=posted["message_id"])
    await admin.post_document(world.sources[1], _zip(tmp_path / "b.zip", c_txt=b"no picture"), "Bare.zip")
    await _run(world)

    previews = await _previews(world)
    assert (previews["Alone.zip"]["kind"], previews["Alone.zip"]["origin"]) == ("inside", "cover.jpg")
    assert _colour(previews["Alone.zip"]["jpeg"]) == "green"
    assert previews["Bare.zip"]["kind"] is None


async def test_p12_creator_and_tags_come_from_the_posting(world, tmp_path):
    admin = world.admin
    await world.fetch("UPDATE channels SET category = 'Models' WHERE title = 'First'")
    named = _zip(tmp_path / "a.zip", a_txt=b"1")
    await admin.post_document(
        world.sources[0], named, "Ada Works - Kit 07.zip", caption="#Castle and #castle #7"
    )
    dated = _zip(tmp_path / "b.zip", a_txt=b"2")
    await admin.post_document(world.sources[1], dated, "May 2024 - Set.zip")
    await _run(world)

    rows = await world.fetch("SELECT creator, tags, metadata, file_count FROM packages ORDER BY file_name")
    assert [tuple(row) for row in rows] == [
        ("Ada Works", ["models", "castle"], "complete", 1),
        ("Second", [], "complete", 1),
    ]


async def test_p3_a_stub_is_completed_from_the_destination_by_ranged_reads_when_its_source_is_gone(
    world, tmp_path
):
    big = _zip(tmp_path / "big.zip", a_txt=b"1", noise_bin=bytes(range(256)) * 60_000, cover_jpg=_jpeg("red"))
    posted = await world.admin.post_document(world.sources[0], big, "Big.zip")
    world.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "4"
    await _run(world)
    assert (await world.fetch("SELECT part_count FROM packages"))[0]["part_count"] == 4

    await world.fetch("DELETE FROM package_files")
    await world.fetch("DELETE FROM previews")
    await world.fetch("UPDATE packages SET metadata = 'pending', file_count = 0, creator = NULL")
    await world.admin.delete_messages(world.sources[0], [posted["message_id"]])
    before = (await world.fetch("SELECT sum(call_count) FROM rate_limits WHERE method = 'upload.getFile'"))[
        0
    ][0]
    await _run(world)

    (row,) = await world.fetch("SELECT metadata, file_count, creator, metadata_reason FROM packages")
    assert tuple(row) == ("complete", 3, "First", None)
    assert _colour((await _previews(world))["Big.zip"]["jpeg"]) == "red"
    after = (await world.fetch("SELECT sum(call_count) FROM rate_limits WHERE method = 'upload.getFile'"))[0][
        0
    ]
    assert after - before <= 12, "a listing needs kilobytes, not the archive"


async def test_a_listing_that_fails_marks_the_package_and_leaves_it_published(world, tmp_path):
    await world.admin.post_document(world.sources[0], _zip(tmp_path / "a.zip", a_txt=b"1"), "One.zip")
    await _run(world)
    await world.fetch("UPDATE packages SET metadata = 'pending', file_count = 0")
    messages = await world.admin.messages(world.destination)
    await world.fetch("UPDATE package_originals SET size = size + 1")
    for _ in range(5):
        await _run(world)
        await world.fetch("UPDATE packages SET metadata_not_before = fleet_now()")
    (row,) = await world.fetch("SELECT state, metadata, metadata_reason, metadata_attempts FROM packages")
    assert tuple(row)[:2] == ("published", "failed")
    assert row["metadata_reason"].endswith("do not make up its files — run: worker verify")
    assert row["metadata_attempts"] == 5
    assert await world.admin.messages(world.destination) == messages
