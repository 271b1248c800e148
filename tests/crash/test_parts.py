"""Archives that need several messages: all parts, in order, once, whatever happens on the way."""

import asyncio
import os
import signal

import pytest
from world import PHONES, open_world

from worker.domain.marker import find_marker

# Each takes many seconds of real leases and real processes; `make crash` runs them.
pytestmark = pytest.mark.long

ONE = ("--account", PHONES[0])
MIB = 1024 * 1024
SPLIT = {"WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1", "WORKER_TRANSFER__PREMIUM_LIMIT_MIB": "2"}


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as opened:
        opened.settings |= SPLIT
        yield opened


async def _parts(world) -> list[tuple[str, int]]:
    """Name and length of what the destination holds, in the order of posting."""
    messages = [m for m in await world.admin.messages(world.destination) if m["document_id"]]
    return [(m["file_name"], find_marker(m["text"]).length) for m in messages if not m["deleted"]]


async def test_a_file_above_the_limit_goes_out_as_numbered_parts_in_order(world):
    path = await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.drain(*ONE)
    await world.check_invariants()
    rest = path.stat().st_size - 2 * MIB
    assert await _parts(world) == [
        ("archive-1.zip.001", MIB),
        ("archive-1.zip.002", MIB),
        ("archive-1.zip.003", rest),
    ]


@pytest.mark.parametrize(
    "place",
    [
        "db.uploads.sending:after:2",
        "telegram.messages.SendMedia:before:2",
        "telegram.messages.SendMedia:after:2",
        "db.uploads.sent:before:3",
        "db.uploads.sent:after:3",
    ],
)
async def test_a_kill_at_a_part_leaves_the_parts_before_it_and_sends_the_rest(world, place):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    assert await world.run("run", "--once", *ONE, faults=f"kill={place}") == {"signal": 9}
    await world.drain(*ONE)
    await world.check_invariants()
    assert len(await _parts(world)) == 3


async def test_a_part_that_is_refused_holds_back_those_after_it(world):
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.admin.add_rule("messages.sendMedia", "error", nth=2, code=400, text="MEDIA_INVALID")
    await world.drain(*ONE)
    await world.check_invariants()
    assert [name[-3:] for name, _ in await _parts(world)] == ["001", "002", "003"]


async def test_premium_that_lapses_cuts_anew_only_what_is_known_to_be_unsent(world):
    await world.admin.set_premium(PHONES[0], True)
    await world.post_archive(world.sources[0], size=9 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=db.uploads.sent:after:1")
    assert ended == {"signal": 9}
    await world.admin.set_premium(PHONES[0], False)
    await world.drain(*ONE)
    await world.check_invariants()
    parts = await _parts(world)
    assert [name[-3:] for name, _ in parts] == ["001", "002", "003", "004"]
    assert [length for _, length in parts[:3]] == [2 * MIB, MIB, MIB]


async def test_a_part_that_was_sent_unheard_is_found_before_anything_is_cut_anew(world):
    await world.admin.set_premium(PHONES[0], True)
    await world.post_archive(world.sources[0], size=9 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=telegram.messages.SendMedia:after:2")
    assert ended == {"signal": 9}
    await world.admin.set_premium(PHONES[0], False)
    await world.drain(*ONE)
    await world.check_invariants()
    assert [length for _, length in await _parts(world)][:2] == [2 * MIB, 2 * MIB]


async def test_a_part_of_unknown_fate_that_no_longer_fits_is_never_cut_and_says_so(world):
    await world.admin.set_premium(PHONES[0], True)
    await world.post_archive(world.sources[0], size=9 * MIB // 2)
    ended = await world.run("run", "--once", *ONE, faults="kill=telegram.messages.SendMedia:before:2")
    assert ended == {"signal": 9}
    await world.admin.set_premium(PHONES[0], False)
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    (row,) = await world.fetch("SELECT reason FROM archive_sets")
    assert "part 2 may have been sent" in row["reason"]
    assert len(await _parts(world)) == 1
    # Premium comes back: the very same part goes out under its own id.
    await world.admin.set_premium(PHONES[0], True)
    await world.drain(*ONE)
    await world.check_invariants()
    assert len(await _parts(world)) == 3


async def test_a_begun_upload_is_finished_before_a_backlog_is(world):
    world.settings["WORKER_FLEET__SETS_IN_FLIGHT"] = "1"
    for _ in range(6):
        await world.post_archive(world.sources[0])
    # The first set's answer is lost; nothing but its own account may finish it, and soon.
    await world.admin.add_rule("messages.sendMedia", "drop_reply")
    pid = world.workers.start("run", *ONE, env=world.env("stop=db.packages.stub:after:4"))
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}
    (row,) = await world.fetch("SELECT count(*) AS n FROM uploads WHERE state = 'open'")
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGCONT)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}
    assert row["n"] == 0, "it was left open while newer sets were published"


async def test_an_hour_long_flood_is_handed_back_with_its_real_time(world):
    await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.sendMedia", "error", code=420, text="FLOOD_WAIT_3600")
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    (row,) = await world.fetch(
        "SELECT state, extract(epoch FROM not_before - fleet_now())::int AS wait FROM archive_sets"
    )
    assert row["state"] == "ready"
    assert 3400 < row["wait"] < 3700
    assert await world.run("run", "--once", *ONE) == {"exit": 0}
    assert len(await world.admin.calls("messages.sendMedia")) == 1
    (part,) = await world.fetch("SELECT state FROM upload_parts")
    assert part["state"] == "planned"
