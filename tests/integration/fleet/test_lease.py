"""Owning an account."""

import asyncio
import uuid

import asyncpg
import pytest
from manual_clock import ManualClock, settle

from worker.clock import SystemClock
from worker.config.settings import LeaseSettings
from worker.errors import LeaseLostError
from worker.fleet.lease import lease_account
from worker.store import workers

_KILL_LOCK_HOLDERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
QUICK = LeaseSettings(lease_secs=5, heartbeat_secs=0.05)


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO accounts (phone, state) VALUES ('+1', 'ready')")
    yield connection
    await connection.close()


async def _worker(database) -> uuid.UUID:
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    return worker_id


async def test_one_worker_owns_an_account_and_leaves_it_clean(database, raw):
    first, second = await _worker(database), await _worker(database)
    async with lease_account(database, SystemClock(), QUICK, 1, first) as lease:
        lease.require()
        async with lease_account(database, SystemClock(), QUICK, 1, second) as other:
            assert other is None
        assert await raw.fetchval("SELECT worker_id FROM accounts") == first
    assert tuple(await raw.fetchrow("SELECT worker_id, lease_until, lease_epoch FROM accounts")) == (
        None,
        None,
        1,
    )


async def test_losing_the_lock_connection_cancels_the_work_inside(database, raw):
    async def work() -> None:
        async with lease_account(database, SystemClock(), QUICK, 1, await _worker(database)) as lease:
            killing = asyncio.create_task(raw.execute(_KILL_LOCK_HOLDERS))
            try:
                await asyncio.Event().wait()
            finally:
                assert not lease.is_trusted
                await killing

    async with asyncio.timeout(10):
        with pytest.raises(LeaseLostError):
            await work()


async def test_a_new_owner_waits_until_the_last_ones_lease_is_over(database, raw):
    await raw.execute("UPDATE accounts SET lease_until = fleet_now() + interval '20 seconds'")
    clock = ManualClock()
    entered = asyncio.Event()

    async def work() -> None:
        async with lease_account(
            database, clock, LeaseSettings(lease_secs=60, heartbeat_secs=30), 1, await _worker(database)
        ):
            entered.set()

    task = asyncio.create_task(work())
    async with asyncio.timeout(10):
        while not clock.sleeping:
            await asyncio.wait([task], timeout=0.01)
    await clock.advance(15)
    assert not entered.is_set()
    await clock.advance(6)
    await settle()
    await task
    assert entered.is_set()


async def test_trust_ends_with_the_time_that_was_counted_from_the_last_heartbeat(database, raw):
    clock = ManualClock()
    settings = LeaseSettings(lease_secs=10, heartbeat_secs=5)
    async with lease_account(database, clock, settings, 1, await _worker(database)) as lease:
        await clock.advance(9.9)
        lease.require()
        await clock.advance(0.2)
        with pytest.raises(LeaseLostError):
            lease.require()


async def test_cancelling_the_work_from_outside_stays_a_cancellation(database, raw):
    started = asyncio.Event()

    async def work() -> None:
        async with lease_account(database, SystemClock(), QUICK, 1, await _worker(database)):
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await raw.fetchval("SELECT lease_until FROM accounts") is None
