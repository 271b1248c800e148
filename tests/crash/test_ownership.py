"""One account, several hosts: whoever falls silent, no two of them are ever connected with one key."""

import asyncio
import os
import signal
import time
from collections import Counter

import pytest
from breakable_line import line_to
from worker_processes import STARVED
from world import LEASE_SECONDS, PHONES, World, open_world

# Each takes many seconds of real leases and real processes; `make crash` runs them.
pytestmark = pytest.mark.long

FOUR = tuple(f"+1000000000{number}" for number in range(1, 5))
# Two hosts, as the ledger sees them.
HERE, THERE = "127.0.0.2", "127.0.0.3"
UPLOAD = "upload.saveFilePart"


def _start(world: World, address: str, *argv: str, **env: str) -> int:
    env = world.env(WORKER_TELEGRAM__BIND_ADDRESS=address, **env)
    env["WORKER_DATA_DIR"] = f"{env['WORKER_DATA_DIR']}-{address}"
    return world.workers.start("run", *argv, env=env)


async def _stop(world: World, *pids: int, ends: dict | None = None) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    for pid in pids:
        assert await asyncio.to_thread(world.workers.wait, pid) == (ends or {"exit": 0})


def _from(connections: list[dict], address: str) -> list[dict]:
    return [connection for connection in connections if connection["address"] == address]


_ALL_INDEXED = "SELECT count(*) > 0 AND bool_and(state = 'indexed') FROM archive_sets"


async def _busy_owner(world: World, **env: str) -> int:
    """A worker that has been held up in the middle of an upload; its parts take their time."""
    await world.post_archive(world.sources[0], size=3_000_000)
    rule = await world.admin.add_rule(UPLOAD, "delay", seconds=0.5, count=0)
    owner = _start(world, HERE, "--account", PHONES[0], **env)
    await world.until_hit(rule)
    return owner


async def _successor_finishes(world: World) -> int:
    successor = _start(world, THERE, "--account", PHONES[0])
    await world.admin.clear_rules()
    await world.until(_ALL_INDEXED)
    return successor


async def test_the_next_owner_of_a_killed_one_finishes_its_upload(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        owner = await _busy_owner(world)
        os.kill(owner, signal.SIGKILL)
        await asyncio.to_thread(world.workers.wait, owner)
        await _stop(world, await _successor_finishes(world))
        await world.drain()
        await world.check_invariants()
        assert _from(await world.admin.connections(), THERE)


async def test_an_owner_that_slept_through_its_lease_sends_nothing_when_it_wakes(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        owner = await _busy_owner(world)
        os.kill(owner, signal.SIGSTOP)
        asleep = time.monotonic()
        successor = await _successor_finishes(world)
        await asyncio.to_thread(time.sleep, max(0, asleep + 2 * LEASE_SECONDS - time.monotonic()))
        seen = max(call["id"] for call in await world.admin.calls())
        os.kill(owner, signal.SIGCONT)
        await _stop(world, successor)
        await _stop(world, owner, ends=STARVED)
        late = [call for call in await world.admin.calls(after=seen) if call["address"] == HERE]
        assert late == [], "what the old owner had begun ended with its lease"
        await world.drain()
        await world.check_invariants()


@pytest.mark.parametrize("how", ["cut", "silence"])
async def test_an_owner_without_a_database_is_gone_before_the_next_one_comes(tmp_path, database_url, how):
    async with open_world(tmp_path, database_url) as world, line_to(database_url) as (line, address):
        owner = await _busy_owner(world, WORKER_DATABASE_URL=address)
        if how == "cut":
            await line.cut()
        else:
            line.silence()
        successor = await _successor_finishes(world)
        await line.mend()
        await _stop(world, successor)
        await _stop(world, owner, ends=STARVED)
        await world.drain()
        await world.check_invariants()
        assert _from(await world.admin.connections(), THERE)


@pytest.mark.parametrize("step", [120, -120])
async def test_a_step_of_the_clock_takes_no_account_from_its_owner(
    tmp_path, database_url, advance_fleet_time, step
):
    async with open_world(tmp_path, database_url) as world:
        owner = await _busy_owner(world)
        await advance_fleet_time(step)
        successor = await _successor_finishes(world)
        await _stop(world, owner)
        await _stop(world, successor)
        await world.drain()
        await world.check_invariants()
        sends = await world.admin.calls("messages.sendMedia")
        assert {call["address"] for call in sends} == {HERE}


async def test_a_clock_that_stepped_back_keeps_nobody_from_the_account_of_a_killed_one(
    tmp_path, database_url, advance_fleet_time
):
    async with open_world(tmp_path, database_url) as world:
        owner = await _busy_owner(world)
        os.kill(owner, signal.SIGKILL)
        await asyncio.to_thread(world.workers.wait, owner)
        await advance_fleet_time(-3600)
        await _stop(world, await _successor_finishes(world))
        await world.drain()
        await world.check_invariants()


async def test_a_short_restart_of_the_database_kills_no_upload(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world, line_to(database_url) as (line, address):
        await world.post_archive(world.sources[0], size=3_000_000)
        # Six parts, eight at once: the whole upload is under way when the database goes.
        rule = await world.admin.add_rule(UPLOAD, "delay", seconds=1.5, count=0)
        owner = _start(world, HERE, "--account", PHONES[0], WORKER_DATABASE_URL=address)
        await world.until_hit(rule)
        await line.cut()
        await asyncio.to_thread(time.sleep, LEASE_SECONDS / 4)
        await line.mend()
        await world.until(_ALL_INDEXED)
        await _stop(world, owner)
        assert (await world.admin.rule_hits())[rule] == 6, "every part went up once"
        await world.drain()
        await world.check_invariants()


async def test_four_workers_with_four_accounts_each_do_work(tmp_path, database_url):
    async with open_world(tmp_path, database_url, phones=FOUR) as world:
        addresses = [f"127.0.0.{number}" for number in range(11, 15)]
        pids = [_start(world, address) for address in addresses]
        await world.until("SELECT count(DISTINCT worker_id) = 4 FROM accounts")
        await world.admin.add_rule(UPLOAD, "delay", seconds=0.3, count=0)
        for _ in range(16):
            await world.post_archive(world.sources[0])
        await world.until("SELECT count(*) FILTER (WHERE state = 'indexed') = 16 FROM archive_sets")
        await _stop(world, *pids)
        sends = Counter(call["address"] for call in await world.admin.calls("messages.sendMedia"))
        assert set(sends) == set(addresses), sends
        assert sum(sends.values()) == 16
        await world.drain()
        await world.check_invariants()


async def test_four_workers_that_run_once_share_four_accounts(tmp_path, database_url):
    async with open_world(tmp_path, database_url, phones=FOUR) as world:
        await world.admin.add_rule(UPLOAD, "delay", seconds=0.5, count=0)
        for number in range(40):
            await world.post_archive(world.sources[number % 2])
        addresses = [f"127.0.0.{number}" for number in range(11, 15)]
        pids = [_start(world, address, "--once") for address in addresses]
        ends = [await asyncio.to_thread(world.workers.wait, pid) for pid in pids]
        assert ends == [{"exit": 0}] * 4
        sends = Counter(call["address"] for call in await world.admin.calls("messages.sendMedia"))
        assert set(sends) == set(addresses), sends
        assert sum(sends.values()) == 40
        assert await world.unfinished() == {}
        await world.check_invariants()


async def test_a_worker_that_runs_once_yields_to_one_that_comes_and_ends_with_it(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        for _ in range(40):
            await world.post_archive(world.sources[0])
        rule = await world.admin.add_rule(UPLOAD, "delay", seconds=0.5, count=0)
        first = _start(world, HERE, "--once")
        await world.until_hit(rule)
        second = _start(world, THERE, "--once")
        for pid in (first, second):
            assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}
        sends = Counter(call["address"] for call in await world.admin.calls("messages.sendMedia"))
        assert set(sends) == {HERE, THERE}, sends
        assert await world.unfinished() == {}
        await world.check_invariants()


async def test_a_worker_that_runs_once_does_not_wait_for_an_only_account(tmp_path, database_url):
    async with open_world(tmp_path, database_url, phones=FOUR[:1]) as world:
        owner = _start(world, HERE)
        await world.until("SELECT count(worker_id) = 1 FROM accounts")
        assert await world.run("run", "--once") == {"exit": 0}
        assert "another worker runs it" in world.workers.logs[-1].read_text()
        await _stop(world, owner)


async def test_accounts_move_to_a_worker_that_joins_and_back_when_it_dies(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        first = _start(world, HERE)
        await world.until("SELECT count(DISTINCT worker_id) = 1 AND count(worker_id) = 2 FROM accounts")
        second = _start(world, THERE)
        await world.until("SELECT count(DISTINCT worker_id) = 2 FROM accounts")
        os.kill(second, signal.SIGKILL)
        await asyncio.to_thread(world.workers.wait, second)
        await world.until(
            "SELECT count(*) = 2 FROM accounts a JOIN workers w ON w.id = a.worker_id WHERE w.address = $1",
            HERE,
        )
        await _stop(world, first)
        await world.drain()
        await world.check_connections()
