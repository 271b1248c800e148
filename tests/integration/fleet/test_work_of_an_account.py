"""What an account takes, in which order, and what it leaves when it has to stop or may not go on."""

import asyncio
import os
import signal

import pytest
from hang_guard import until
from world import PHONES, open_world

FIRST, SECOND = PHONES
# Of an owner that is killed: longer than a busy machine takes to start the next one.
LONG_LEASE = {"WORKER_LEASE__LEASE_SECS": "30"}
STATES = "SELECT name, state, reason, attempts FROM archive_sets ORDER BY id"


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


def _held(world, place: str, *argv: str, **settings: str) -> int:
    return world.workers.start("run", *argv, env=world.env(f"stop={place}", **settings))


async def _until_held(world, pid: int) -> None:
    assert await asyncio.to_thread(world.workers.until_stopped, pid) == {"stopped": True}


async def _ended(world, pid: int) -> dict:
    return await asyncio.to_thread(world.workers.wait, pid)


def _files(world) -> list:
    workspace = world.folder / "data" / "workspace"
    return [path for path in workspace.rglob("*") if path.is_file()]


async def test_a_set_that_does_not_fit_on_the_disk_waits_with_that_reason_and_goes_on_later(world):
    await world.post_archive(world.sources[0])
    world.settings["WORKER_TRANSFER__MIN_FREE_MIB"] = str(10**9)
    assert await world.run("run", "--once") == {"exit": 0}
    ((_, state, reason, attempts),) = await world.fetch(STATES)
    assert (state, attempts) == ("ready", 0)
    assert reason.startswith("disk: 0.1 MiB needed, but all of it holds")
    assert reason in world.workers.logs[-1].read_text(), "the run says what waits, and why"

    del world.settings["WORKER_TRANSFER__MIN_FREE_MIB"]
    await world.fetch("UPDATE archive_sets SET not_before = fleet_now()")
    await world.drain()
    await world.check_invariants()


async def test_an_account_that_may_not_post_takes_nothing_and_says_what_to_do(world):
    await world.admin.kick(world.destination, FIRST)
    await world.admin.join(world.destination, FIRST)
    await world.post_archive(world.sources[0])
    assert await world.run("run", "--once", "--account", FIRST) == {"exit": 0}
    told = world.workers.logs[-1].read_text()
    assert "may not post in Library — make it an administrator of that channel" in told
    ((_, state, _, attempts),) = await world.fetch(STATES)
    assert (state, attempts) == ("ready", 0)
    await world.drain("--account", SECOND)
    await world.check_invariants()


async def test_a_kicked_account_uses_up_no_attempt_of_a_set_that_others_can_read(world):
    await world.post_archive(world.sources[0])
    pid = _held(world, "workspace.open:before:1", "--once", "--account", FIRST)
    await _until_held(world, pid)
    await world.admin.kick(world.sources[0], FIRST)
    os.kill(pid, signal.SIGCONT)
    assert await _ended(world, pid) == {"exit": 0}
    ((_, state, reason, attempts),) = await world.fetch(STATES)
    assert (state, attempts) == ("ready", 0)
    assert "can no longer read its channel" in reason
    await world.drain("--account", SECOND)
    await world.check_invariants()


async def test_a_run_that_waits_for_the_lease_of_a_killed_one_says_so_in_one_line(world):
    world.settings |= LONG_LEASE
    await world.post_archive(world.sources[0])
    killed = await world.run("run", "--once", "--account", FIRST, faults="kill=workspace.open:before:1")
    assert killed == {"signal": 9}
    assert await world.run("run", "--once", "--account", FIRST) == {"exit": 0}
    (line,) = [each for each in world.workers.logs[-1].read_text().splitlines() if "worker.waits" in each]
    assert "account 1: its last worker ended without a word; waiting " in line
    await world.check_invariants()


async def test_a_worker_that_finds_every_account_taken_says_what_it_waits_for(world):
    """As after a kill: the killed one counts until it has been silent for a lease."""
    world.settings |= LONG_LEASE
    killed = await world.run("run", "--account", FIRST, faults="kill=telegram.users.GetFullUser:after:1")
    assert killed == {"signal": 9}
    pid = world.workers.start("run", "--account", FIRST, env=world.env())
    log = world.workers.logs[-1]
    await until(lambda: asyncio.to_thread(lambda: "silent for" in log.read_text()))
    os.kill(pid, signal.SIGTERM)
    assert await _ended(world, pid) == {"exit": 0}
    (line,) = [each for each in log.read_text().splitlines() if "silent for" in each]
    assert "other workers run the accounts" in line


async def test_what_cannot_be_finished_in_time_is_handed_back_as_if_never_begun(world):
    await world.post_archive(world.sources[0], size=3_000_000)
    await world.admin.set_shape(mbps=2)
    pid = world.workers.start("run", "--account", FIRST, env=world.env(WORKER_FLEET__DRAIN_SECS="0.5"))
    await until(lambda: asyncio.to_thread(_files, world))
    os.kill(pid, signal.SIGTERM)
    assert await _ended(world, pid) == {"exit": 0}, world.workers.logs[-1].read_text()
    ((_, state, _, attempts),) = await world.fetch(STATES)
    assert (state, attempts) == ("ready", 0)
    assert _files(world) == []
    assert await world.fetch("SELECT 1 FROM disk_reservations") == []
    await world.admin.set_shape()
    await world.drain()
    await world.check_invariants()


async def test_a_second_signal_ends_the_work_at_once(world):
    await world.post_archive(world.sources[0], size=3_000_000)
    await world.admin.set_shape(mbps=2)
    pid = world.workers.start("run", "--account", FIRST, env=world.env())
    await until(lambda: asyncio.to_thread(_files, world))
    os.kill(pid, signal.SIGTERM)
    await until(lambda: asyncio.to_thread(lambda: "worker.stopping" in world.workers.logs[-1].read_text()))
    os.kill(pid, signal.SIGTERM)
    await _ended(world, pid)
    assert _files(world) == []
    await world.admin.set_shape()
    await world.drain()
    await world.check_invariants()


async def test_a_long_backlog_holds_up_neither_a_scan_nor_another_channel(world):
    for _ in range(12):
        await world.post_archive(world.sources[0])
    slow = {"WORKER_FLEET__CYCLE_SECS": "0.5", "WORKER_FLEET__SETS_IN_FLIGHT": "1"}
    await world.admin.add_rule("upload.saveFilePart", "delay", seconds=2.0, count=0)
    pid = world.workers.start("run", "--account", FIRST, env=world.env(**slow))
    await until(lambda: world.fetch("SELECT 1 FROM packages"))
    late = await world.post_archive(world.sources[1])
    await until(lambda: world.fetch("SELECT 1 FROM packages WHERE file_name = $1", late.name))
    assert await world.fetch("SELECT 1 FROM archive_sets WHERE state = 'ready'"), "the backlog came first"
    await world.admin.clear_rules()
    os.kill(pid, signal.SIGTERM)
    await _ended(world, pid)
    await world.drain()
    await world.check_invariants()


async def test_the_next_set_is_fetched_while_one_is_published(world):
    for _ in range(2):
        await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.sendMedia", "delay", seconds=3.0)
    pid = world.workers.start("run", "--account", FIRST, env=world.env())
    both = "SELECT 1 FROM archive_sets WHERE state = 'claimed' HAVING count(*) = 2"
    await until(lambda: world.fetch(both))
    fetched = (
        "SELECT 1 FROM archive_sets WHERE state = 'claimed' AND content_hash IS NOT NULL HAVING count(*) = 2"
    )
    await until(lambda: world.fetch(fetched))
    os.kill(pid, signal.SIGTERM)
    assert await _ended(world, pid) == {"exit": 0}
    await world.drain()
    await world.check_invariants()


async def test_an_account_waits_for_what_another_is_proving_and_does_it_itself_if_that_one_is_gone(world):
    world.calm = False
    for _ in range(3):
        await world.post_archive(world.sources[0])
    prover = _held(world, "db.proofs.next:after:2", "--account", FIRST)
    await _until_held(world, prover)
    assert await world.run("run", "--once", "--account", SECOND) == {"exit": 0}
    assert [
        tuple(row) for row in await world.fetch("SELECT account_id, count(*) FROM uploads GROUP BY 1")
    ] == [(2, 3)]
    os.kill(prover, signal.SIGKILL)
    await world.drain()
    await world.check_invariants()
