"""Premium comes and goes while an account is connected."""

import asyncio
import os
import signal

import pytest
from hang_guard import until
from world import PHONES, open_world

FIRST, _ = PHONES
MIB = 1024 * 1024
SPLIT = {"WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1", "WORKER_TRANSFER__PREMIUM_LIMIT_MIB": "2"}


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        opened.settings |= SPLIT
        yield opened


async def test_premium_that_lapses_during_a_connection_is_noticed_with_the_next_list_of_chats(world):
    await world.admin.set_premium(FIRST, True)
    pid = world.workers.start("run", "--account", FIRST, env=world.env(WORKER_FLEET__CYCLE_SECS="0.2"))
    await world.until("SELECT is_premium FROM accounts WHERE phone = $1", FIRST)
    await world.admin.set_premium(FIRST, False)

    async def noticed():
        # The list that was read when the account connected may be written down only after this.
        await world.fetch("UPDATE memberships SET checked_at = checked_at - interval '11 minutes'")
        return await world.fetch("SELECT 1 FROM accounts WHERE phone = $1 AND NOT is_premium", FIRST)

    await until(noticed)
    await world.post_archive(world.sources[0], size=3 * MIB // 2)
    await world.until("SELECT count(*) = 1 FROM archive_sets WHERE state = 'indexed'")
    os.kill(pid, signal.SIGTERM)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}
    await world.check_invariants()
    (package,) = await world.fetch("SELECT part_count FROM packages")
    assert package["part_count"] == 2
