"""What keeps breaking between here and Telegram ends a single run, with a reason that a person understands."""

import asyncio
import os
import signal

import pytest
from enemy_line import KEY_UNKNOWN, enemy_between, let_pass
from hang_guard import until
from world import PHONES, open_world

ONE = ("run", "--once", "--account", PHONES[0])
# Lines that break for four deadlines of a call are trouble; what waits for it waits as long as it does outside.
SETTINGS = {"WORKER_TELEGRAM__CALL_TIMEOUT_SECS": "1", "WORKER_FLEET__RETRY_BASE_SECS": "60"}
TOO_LONG = b"\xff\xff\xff\x7f"


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


@pytest.fixture
async def enemy(world):
    async with enemy_between(world.facts["host"], world.facts["port"]) as line:
        world.settings |= {**SETTINGS, "WORKER_TELEGRAM__PORT": str(line.port)}
        yield line


async def _sets(world):
    return await world.fetch("SELECT state, attempts, reason FROM archive_sets ORDER BY id")


async def test_a_refusal_in_the_clear_ends_a_single_run_with_its_reason_and_leaves_the_account_ready(
    world, enemy
):
    await world.post_archive(world.sources[0])
    enemy.answer = lambda passage: passage.frame(KEY_UNKNOWN)
    assert await world.run(*ONE) == {"exit": 1}
    told = world.workers.logs[-1].read_text()
    assert "refused with -404, as if Telegram did not know this session" in told
    assert "anybody on the way can say so" in told
    (account,) = await world.fetch("SELECT state FROM accounts WHERE phone = $1", PHONES[0])
    assert account["state"] == "ready"
    enemy.answer = lambda _: None
    await _drain(world, enemy)


async def test_a_connection_for_calls_that_keeps_breaking_ends_a_single_run_with_its_reason(world, enemy):
    await world.post_archive(world.sources[0])

    def cut_soon(passage, packet):
        """The first connection lasts for the look at the account, every other one for a single packet."""
        most = 6 if passage is enemy.passages[0] else 1
        return None if passage.packets > most else let_pass(passage, packet)

    enemy.tamper = cut_soon
    assert await world.run(*ONE) == {"exit": 1}
    told = world.workers.logs[-1].read_text()
    assert "account 1: failed (the connection to Telegram broke" in told
    assert "look at the network between here and Telegram" in told
    await _drain(world, enemy)


async def _drain(world, enemy):
    """An honest line, some minutes later."""
    enemy.tamper = let_pass
    await world.fetch("UPDATE archive_sets SET not_before = fleet_now()")
    await world.drain("--account", PHONES[0])
    await world.check_invariants()


async def test_lines_for_files_that_keep_breaking_end_a_single_run_and_use_up_no_attempt(world, enemy):
    for _ in range(3):
        await world.post_archive(world.sources[0])
    enemy.tamper = lambda passage, packet: TOO_LONG if passage.is_for_files else passage.frame(packet)
    assert await world.run(*ONE) == {"exit": 0}
    told = world.workers.logs[-1].read_text()
    assert "the connection for files to data centre 2 broke" in told
    assert "a packet of 2147483647 bytes was announced" in told
    assert {(row["state"], row["attempts"]) for row in await _sets(world)} <= {
        ("ready", 0),
        ("collecting", 0),
    }
    await _drain(world, enemy)


async def test_an_account_that_is_left_over_a_dead_line_is_waited_for_by_its_next_owner(world, enemy):
    """The end of the connection is swallowed like all else: Telegram keeps it, and ends a session used twice."""
    pid = world.workers.start("run", "--account", PHONES[0], env=world.env())
    log = world.workers.logs[-1]
    await until(lambda: asyncio.to_thread(lambda: "scan." in log.read_text()))
    enemy.tamper = lambda *_: b""
    os.kill(pid, signal.SIGTERM)
    await asyncio.to_thread(world.workers.wait, pid)
    (account,) = await world.fetch("SELECT worker_id FROM accounts WHERE phone = $1", PHONES[0])
    assert account["worker_id"] is not None
    assert "Telegram did not hear its end" in log.read_text()
