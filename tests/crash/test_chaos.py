"""Minutes of trouble with everything the fleet stands on; afterwards everything is there, once."""

import asyncio
import os
import random
import signal
import time

import asyncpg
import pytest
from breakable_line import line_to
from world import LEASE_SECONDS, PHONES, open_world

MINUTES = float(os.environ.get("CRASH_MINUTES", "1"))


class Chaos:
    """Two workers that run for good, and the troubles that befall them."""

    def __init__(self, world, line, database_url, chance) -> None:
        self._world = world
        self._line = line
        self._database_url = database_url
        self._chance = chance
        self._pids: dict[str, int] = {}

    def start(self) -> None:
        for number, phone in enumerate(PHONES, 2):
            if phone not in self._pids:
                env = self._world.env(
                    WORKER_FLEET__CYCLE_SECS="1", WORKER_TELEGRAM__BIND_ADDRESS=f"127.0.0.{number}"
                )
                self._pids[phone] = self._world.workers.start("run", "--account", phone, env=env)

    async def stop(self) -> None:
        for pid in self._pids.values():
            os.kill(pid, signal.SIGTERM)
        for pid in self._pids.values():
            await asyncio.to_thread(self._world.workers.wait, pid)
        self._pids.clear()

    async def kill_a_worker(self) -> None:
        phone = self._chance.choice(PHONES)
        pid = self._pids.pop(phone)
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(self._world.workers.wait, pid)

    async def freeze_a_worker(self) -> None:
        """Stopped for twice its lease, then continued with its sockets open and its buffers full."""
        pid = self._pids[self._chance.choice(PHONES)]
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(2 * LEASE_SECONDS)
        os.kill(pid, signal.SIGCONT)

    async def cut_the_database(self) -> None:
        await self._line.cut()
        await asyncio.sleep(self._chance.uniform(0.1, LEASE_SECONDS * 1.5))
        await self._line.mend()

    async def silence_the_database(self) -> None:
        self._line.silence()
        await asyncio.sleep(self._chance.uniform(0.5, LEASE_SECONDS * 2))
        # Bytes that were swallowed do not come back.
        await self._line.cut()
        await self._line.mend()

    async def end_the_lock_holders(self) -> None:
        connection = await asyncpg.connect(self._database_url)
        try:
            await connection.execute(
                "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
                " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
            )
        finally:
            await connection.close()

    async def disturb_telegram(self) -> None:
        phone = self._chance.choice(PHONES)
        if self._chance.random() < 0.5:
            await self._world.admin.disconnect(phone)
        else:
            await self._world.admin.add_rule("messages.sendMedia", "drop_reply", account=phone)

    async def restart_telegram(self) -> None:
        await asyncio.to_thread(self._world.telegram.restart)

    def troubles(self):
        return (
            self.restart_telegram,
            self.kill_a_worker,
            self.freeze_a_worker,
            self.cut_the_database,
            self.silence_the_database,
            self.end_the_lock_holders,
            self.disturb_telegram,
        )


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_after_minutes_of_chaos_everything_is_there_once(tmp_path, database_url):
    chance = random.Random(7)
    async with line_to(database_url) as (line, address), open_world(tmp_path, database_url) as world:
        world.settings["WORKER_DATABASE_URL"] = address
        chaos = Chaos(world, line, database_url, chance)
        ends = time.monotonic() + 60 * MINUTES
        while time.monotonic() < ends:
            chaos.start()
            await world.post_archive(*chance.sample(world.sources, chance.randint(1, 2)), size=400_000)
            await world.post_files(chance.choice(world.sources), world.make_volumes())
            await asyncio.sleep(chance.uniform(0.5, 2))
            await chance.choice(chaos.troubles())()
        await chaos.stop()
        await world.admin.clear_rules()
        await world.drain()
        await world.check_invariants()
        assert _overlaps(await world.admin.connections()) == []
        states = {row["state"] for row in await world.fetch("SELECT state FROM accounts")}
        assert states == {"ready"}, "an account was hurt"


def _overlaps(connections) -> list:
    """Pairs of connections with one key, from two addresses at once."""
    return [
        (one, other)
        for one in connections
        for other in connections
        if one["auth_key_id"] == other["auth_key_id"]
        and one["address"].split(":")[0] < other["address"].split(":")[0]
        and one["connected_at"] < (other["disconnected_at"] or float("inf"))
        and other["connected_at"] < (one["disconnected_at"] or float("inf"))
    ]
