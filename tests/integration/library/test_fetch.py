"""``worker fetch``: a package's original files, byte for byte, by whoever may connect the account."""

import asyncio
import hashlib
import json
import os
import signal
import zipfile

import pytest
from running_worker import running_worker
from world import PHONES, open_world

MIB = 1024 * 1024


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        opened.settings["WORKER_TRANSFER__STANDARD_LIMIT_MIB"] = "2"
        yield opened


async def _publish_split(world, mebibytes=5):
    path = world.folder / "big.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("noise.bin", os.urandom(mebibytes * MIB))
    await world.admin.post_document(world.sources[0], path, "Big Kit.zip")
    ended = await world.run("run", "--once", "--account", PHONES[0])
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    rows = await world.fetch("SELECT id, part_count FROM packages")
    assert [tuple(row) for row in rows] == [(1, mebibytes // 2 + 1)]
    return path.read_bytes()


def _log(world):
    return world.workers.logs[-1].read_text()


async def test_p9_a_split_archive_comes_back_byte_for_byte(world, tmp_path):
    original = await _publish_split(world)
    out = tmp_path / "out"
    assert await world.run("fetch", "1", "-o", str(out), "--json") == {"exit": 0}, _log(world)
    assert [path.name for path in out.iterdir()] == ["Big Kit.zip"]
    assert (out / "Big Kit.zip").read_bytes() == original
    printed = json.loads(_log(world)[_log(world).index("{\n") :])
    assert printed["files"][0]["sha256"] == hashlib.sha256(original).hexdigest()
    assert (await world.fetch("SELECT count(*) FROM requests"))[0][0] == 0, "nobody had to be asked"

    before = (out / "Big Kit.zip").stat()
    assert await world.run("fetch", "1", "-o", str(out)) == {"exit": 2}
    assert "is there already — move it away" in _log(world)
    assert (out / "Big Kit.zip").stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in out.iterdir()] == ["Big Kit.zip"]


async def test_an_account_that_a_worker_runs_is_asked_and_never_connected_twice(world, tmp_path):
    original = await _publish_split(world)
    out = tmp_path / "out"
    async with running_worker(world):
        runs = (await world.fetch("SELECT count(*) FROM runs"))[0][0]
        assert await world.run("fetch", "1", "-o", str(out)) == {"exit": 0}, _log(world)
        assert (await world.fetch("SELECT count(*) FROM runs"))[0][0] == runs, "no account was connected anew"
    assert (out / "Big Kit.zip").read_bytes() == original
    (row,) = await world.fetch("SELECT kind, state, done, total, secret FROM requests")
    assert tuple(row) == ("restore", "done", len(original), len(original), None)
    assert (await world.fetch("SELECT count(*) FROM request_chunks"))[0][0] == 0


async def test_a_worker_that_was_killed_is_not_asked_and_the_wait_for_its_lease_is_told(world, tmp_path):
    original = await _publish_split(world)
    out = tmp_path / "out"
    # Longer than a busy machine takes to start the command.
    world.settings["WORKER_LEASE__LEASE_SECS"] = "30"
    async with running_worker(world, killed=True):
        pass
    assert await world.run("fetch", "1", "-o", str(out), "--json") == {"exit": 0}, _log(world)
    assert (out / "Big Kit.zip").read_bytes() == original
    (line,) = [each for each in _log(world).splitlines() if "worker.waits" in each]
    assert "its last worker ended without a word; waiting " in line
    assert await world.fetch("SELECT 1 FROM requests") == []


async def test_ctrl_c_cancels_what_was_asked_for(world, tmp_path):
    await _publish_split(world)
    out = tmp_path / "out"
    async with running_worker(world):
        await world.admin.add_rule("upload.getFile", "delay", seconds=5, count=0)
        pid = world.workers.start("fetch", "1", "-o", str(out), env=world.env())
        await world.until("SELECT count(*) FROM requests WHERE state = 'running'")
        os.kill(pid, signal.SIGINT)
        ended = await asyncio.to_thread(world.workers.wait, pid)
        assert ended == {"exit": 130}, _log(world)
        (row,) = await world.fetch("SELECT state, reason FROM requests")
        assert tuple(row) == ("cancelled", "whoever asked for it stopped waiting")
    assert not out.exists() or list(out.iterdir()) == []


async def test_a_command_goes_on_by_itself_when_the_worker_it_asked_dies(world, tmp_path):
    original = await _publish_split(world)
    out = tmp_path / "out"
    async with running_worker(world) as worker:
        await world.admin.add_rule("upload.getFile", "delay", seconds=1, count=0)
        pid = world.workers.start("fetch", "1", "-o", str(out), env=world.env())
        await world.until("SELECT count(*) FROM requests WHERE state = 'running'")
        os.kill(worker, signal.SIGTERM)
        ended = await asyncio.to_thread(world.workers.wait, pid)
    assert ended == {"exit": 0}, _log(world)
    assert (out / "Big Kit.zip").read_bytes() == original


async def test_a_killed_fetch_leaves_nothing_under_the_name_and_is_gone_on_with(world, tmp_path):
    original = await _publish_split(world, mebibytes=7)
    out = tmp_path / "out"
    command = ("fetch", "1", "-o", str(out))
    assert await world.run(*command, faults="kill=restored.write:after:5") == {"signal": 9}, _log(world)
    assert [path.name[:7] for path in out.iterdir()] == [".fetch-"]
    query = "SELECT sum(call_count)::int FROM rate_limits WHERE method = 'upload.getFile'"
    before = (await world.fetch(query))[0][0]
    assert await world.run(*command) == {"exit": 0}, _log(world)
    assert [path.name for path in out.iterdir()] == ["Big Kit.zip"]
    assert (out / "Big Kit.zip").read_bytes() == original
    assert (await world.fetch(query))[0][0] - before <= 6, "what was there was not read again"


async def test_bytes_with_another_hash_never_get_the_name(world, tmp_path):
    await _publish_split(world)
    await world.fetch("UPDATE packages SET content_hash = sha256('other')")
    out = tmp_path / "out"
    assert await world.run("fetch", "1", "-o", str(out)) == {"exit": 1}
    assert "are not those that were published" in _log(world)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("named", "said"),
    [("99", "there is no package 99"), ("Big.zip", "names no package"), ("ab" * 32, "no package has")],
)
async def test_an_unknown_package_is_one_line_with_the_remedy(world, tmp_path, named, said):
    assert await world.run("fetch", named, "-o", str(tmp_path / "out")) == {"exit": 2}
    lines = [line for line in _log(world).splitlines() if line.startswith("worker:")]
    assert len(lines) == 1
    assert said in lines[0]
    assert "worker packages list" in lines[0]
