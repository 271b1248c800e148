"""A source in copy mode: its files are sent on as they are, and uploaded where that cannot be."""

import asyncio
import json
import os
import signal

import pytest
from world import PHONES, open_world

from worker.domain.marker import find_marker

RUN = ("run", "--once", "--account", PHONES[0])
MIB = 1024 * 1024


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--record-all-calls", calm=True) as opened:
        await opened.fetch("UPDATE channels SET copy_mode = true WHERE is_source")
        yield opened


async def _documents(world, channel):
    """What the channel holds, in the order of posting."""
    return [m for m in await world.admin.messages(channel) if m["document_id"] and not m["deleted"]]


async def _publish(world):
    ended = await world.run(*RUN)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    await world.check_invariants()


async def _uploaded_parts(world):
    calls = [await world.admin.calls(f"upload.{name}") for name in ("saveFilePart", "saveBigFilePart")]
    return sum(map(len, calls))


async def _publish_held_at(world, place, meanwhile):
    """Publish, with something happening while the worker stands at this place."""
    pid = world.workers.start(*RUN, env=world.env(f"stop={place}"))
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    await meanwhile
    os.kill(pid, signal.SIGCONT)
    ended = await asyncio.to_thread(world.workers.wait, pid)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()


async def _check_it_was_uploaded_under_its_first_id(world):
    """The message holds the same bytes as another document, and was sent with the intent's own id."""
    (original,) = await _documents(world, world.sources[0])
    (sent,) = await _documents(world, world.destination)
    (part,) = await world.fetch("SELECT random_id, document_id FROM upload_parts")
    assert sent["document_id"] not in (None, original["document_id"])
    assert (sent["random_id"], sent["document_id"]) == tuple(part)
    assert await _uploaded_parts(world) > 0


async def test_every_file_is_the_very_document_of_its_source_and_no_byte_is_uploaded(world):
    await world.post_archive(world.sources[0])
    await world.post_files(world.sources[0], world.make_volumes())
    await _publish(world)
    originals = {m["document_id"]: m for m in await _documents(world, world.sources[0])}
    sent = await _documents(world, world.destination)
    assert {m["document_id"] for m in sent} == set(originals)
    for message in sent:
        original = originals[message["document_id"]]
        marker = find_marker(message["text"])
        assert (marker.source_message, marker.source_document) == (original["id"], original["document_id"])
        assert message["file_name"] == marker.file_name
    assert await _uploaded_parts(world) == 0
    rows = await world.fetch("SELECT random_id FROM upload_parts ORDER BY upload_id, ordinal")
    assert {row["random_id"] for row in rows} == {message["random_id"] for message in sent}


async def test_a_source_that_is_not_in_copy_mode_is_uploaded(world):
    await world.fetch("UPDATE channels SET copy_mode = false")
    await world.post_archive(world.sources[0])
    await _publish(world)
    await _check_it_was_uploaded_under_its_first_id(world)
    assert len(await world.admin.calls("messages.sendMedia")) == 1


async def test_a_file_that_has_to_be_split_is_uploaded_beside_a_volume_that_is_copied(world):
    world.settings |= {"WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1", "WORKER_TRANSFER__PREMIUM_LIMIT_MIB": "1"}
    volumes = world.make_volumes(count=2, size=3 * MIB)
    # The second volume is small enough to go as it is.
    data = b"".join(path.read_bytes() for path in volumes)
    for path, piece in zip(volumes, (data[: 5 * MIB // 2], data[5 * MIB // 2 :]), strict=True):
        path.write_bytes(piece)
    await world.post_files(world.sources[0], volumes)
    await _publish(world)
    first, second = await _documents(world, world.sources[0])
    sent = await _documents(world, world.destination)
    assert [m["file_name"].removeprefix(first["file_name"]) for m in sent[:3]] == [".001", ".002", ".003"]
    assert [m["document_id"] == second["document_id"] for m in sent] == [False, False, False, True]


async def test_p8_a_name_that_has_to_be_cleaned_is_never_sent_on_as_it_is(world):
    path = await world.post_archive()
    await world.admin.post_document(world.sources[0], path, "a\u202ekit?.zip")
    await _publish(world)
    await _check_it_was_uploaded_under_its_first_id(world)
    (sent,) = await _documents(world, world.destination)
    assert sent["file_name"] == "akit_.zip"


@pytest.mark.parametrize("protected", ["the channel", "the message"])
@pytest.mark.parametrize("place", ["db.uploads.intent:after:1", "telegram.messages.SendMedia:before:1"])
async def test_what_is_protected_by_the_time_of_sending_is_uploaded(world, place, protected):
    await world.post_archive(world.sources[0])
    (original,) = await _documents(world, world.sources[0])
    protect = (
        world.admin.set_noforwards(world.sources[0], True)
        if protected == "the channel"
        else world.admin.protect_message(world.sources[0], original["id"])
    )
    await _publish_held_at(world, place, protect)
    await world.check_invariants()
    await _check_it_was_uploaded_under_its_first_id(world)
    refused = [call["error"] for call in await world.admin.calls("messages.sendMedia") if not call["ok"]]
    asked = place.startswith("telegram")
    assert ["CHAT_FORWARDS_RESTRICTED" in error for error in refused] == [True] * asked


async def test_a_source_that_the_account_sees_no_longer_is_uploaded(world):
    await world.post_archive(world.sources[0])
    kick = world.admin.kick(world.sources[0], PHONES[0])
    await _publish_held_at(world, "telegram.messages.SendMedia:before:1", kick)
    await world.check_invariants()
    await _check_it_was_uploaded_under_its_first_id(world)


async def test_a_message_that_is_gone_by_the_time_of_sending_is_uploaded(world):
    await world.post_archive(world.sources[0])
    (original,) = await _documents(world, world.sources[0])
    gone = world.admin.delete_messages(world.sources[0], [original["id"]])
    await _publish_held_at(world, "db.uploads.intent:after:1", gone)
    (sent,) = await _documents(world, world.destination)
    assert (sent["sha256"], sent["document_id"] == original["document_id"]) == (original["sha256"], False)


async def test_a_reference_that_has_run_out_is_fetched_anew_and_the_copy_is_made(world):
    await world.post_archive(world.sources[0])
    await _publish_held_at(world, "telegram.messages.SendMedia:before:1", world.admin.expire_references())
    await world.check_invariants()
    assert [call["ok"] for call in await world.admin.calls("messages.sendMedia")] == [False, True]
    (original,) = await _documents(world, world.sources[0])
    (sent,) = await _documents(world, world.destination)
    assert sent["document_id"] == original["document_id"]
    assert await _uploaded_parts(world) == 0


@pytest.mark.parametrize(
    ("text", "count"),
    [("MEDIA_EMPTY", 1), ("FILE_REFERENCE_EXPIRED", 2)],
)
async def test_a_copy_that_is_refused_is_uploaded_with_the_same_id(world, text, count):
    await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.sendMedia", "error", code=400, text=text, count=count)
    await _publish(world)
    await _check_it_was_uploaded_under_its_first_id(world)
    assert len(await world.admin.calls("messages.sendMedia")) == count + 1


async def test_a_refused_copy_keeps_its_place_among_the_others(world):
    await world.post_files(world.sources[0], world.make_volumes())
    await world.admin.add_rule("messages.sendMedia", "error", code=400, text="MEDIA_EMPTY", nth=2)
    await _publish(world)
    originals = {m["document_id"] for m in await _documents(world, world.sources[0])}
    sent = await _documents(world, world.destination)
    assert [m["document_id"] in originals for m in sent] == [True, False, True]


async def test_a_copy_told_to_wait_is_known_to_be_unsent_and_copied_later(world):
    await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.sendMedia", "error", code=420, text="FLOOD_WAIT_3600")
    assert await world.run(*RUN) == {"exit": 0}
    assert [tuple(row) for row in await world.fetch("SELECT state FROM upload_parts")] == [("planned",)]
    assert await _documents(world, world.destination) == []


async def test_a_copied_package_is_fetched_and_rebuilt_like_any_other(world, tmp_path, empty_database_url):
    single = await world.post_archive(world.sources[0])
    volumes = world.make_volumes()
    await world.post_files(world.sources[0], volumes)
    await _publish(world)
    originals = {path.name: path.read_bytes() for path in (single, *volumes)}
    before = await _fetched(world, tmp_path / "before")
    assert before == originals
    # The copies outlive what they were made of.
    posted = [m["id"] for m in await _documents(world, world.sources[0])]
    await world.admin.delete_messages(world.sources[0], posted)

    await world.forget_everything(empty_database_url)
    assert await world.run("rebuild", "--json") == {"exit": 0}
    said = world.workers.logs[-1].read_text()
    (report,) = json.loads(said[said.index("{\n") :])["channels"]
    assert (report["packages"], report["left_out"]) == (2, [])
    assert await _fetched(world, tmp_path / "after") == originals
    assert await world.run("verify", "--full") == {"exit": 0}, world.workers.logs[-1].read_text()


async def _fetched(world, folder):
    """Every file of every package, by its name."""
    for row in await world.fetch("SELECT id FROM packages"):
        ended = await world.run("fetch", str(row["id"]), "-o", str(folder / str(row["id"])))
        assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
