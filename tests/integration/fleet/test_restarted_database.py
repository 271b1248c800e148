"""A real server that is killed under a lease, forgets every lock, and comes back with another time."""

import asyncio
import contextlib
import os
import shutil
import signal
import uuid

import asyncpg
import pytest
from hang_guard import HANG_SECONDS, until
from manual_clock import ManualClock
from server_folder import make_server_folder

from worker.clock import SystemClock
from worker.config.settings import LeaseSettings
from worker.fleet.lease import lease_account
from worker.store import migrations, workers
from worker.store.database import Database
from worker.store.embedded import open_cluster

# Outlasts a server that starts on a busy machine.
PATIENT = LeaseSettings(lease_secs=2 * HANG_SECONDS, heartbeat_secs=0.1)


@pytest.fixture
def folder():
    made = make_server_folder("fleet restart ")
    yield made
    shutil.rmtree(made)


async def _worker(database) -> uuid.UUID:
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return worker_id


async def test_an_owner_keeps_its_account_through_a_restart_that_forgets_locks_and_sets_the_clock(folder):
    with open_cluster(folder) as address:
        await asyncio.to_thread(migrations.upgrade, address)
        database = Database(address)
        raw = await asyncpg.connect(address)
        await raw.execute("INSERT INTO accounts (phone, state) VALUES ('+1', 'ready')")
        owner, other = await _worker(database), await _worker(database)
        async with lease_account(database, SystemClock(), PATIENT, 1, owner) as lease:
            await raw.execute(
                "CREATE OR REPLACE FUNCTION fleet_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS "
                "$$ SELECT clock_timestamp() + interval '15 seconds' $$"
            )
            (pid_file,) = folder.glob("**/postmaster.pid")
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)

            async def answered() -> bool:
                # Whoever is there first asks for the account: a successor that saw nothing of its owner.
                with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    await (await asyncpg.connect(address)).close()
                    return True
                return False

            await until(answered)
            async with (
                asyncio.timeout(HANG_SECONDS),
                lease_account(database, _Hurrying(), PATIENT, 1, other) as second,
            ):
                assert second is None
            async with asyncio.timeout(HANG_SECONDS):
                await lease.confirmed()
            lease.require()
        await database.close()
        again = await asyncpg.connect(address)
        assert await again.fetchval("SELECT lease_epoch FROM accounts") == 1
        await again.close()
        raw.terminate()


class _Hurrying(ManualClock):
    """Stands still, however often its user looks: nothing but a sign of life ends the wait."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.05)
