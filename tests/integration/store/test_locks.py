"""Advisory locks on a connection of their own."""

import asyncio
import contextlib
from uuid import uuid4

import asyncpg
import pytest
from hang_guard import HANG_SECONDS
from manual_clock import settle

from worker.errors import LeaseLostError, RetryableError
from worker.store import workers
from worker.store.account_locks import AccountLocks
from worker.store.leases import look
from worker.store.locks import LockSession

HASH = bytes(range(32))
NO_PATIENCE = 0.3
_KILL_LOCK_HOLDERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.fixture
async def two(database_url):
    sessions = [await LockSession.open(database_url, answer_within=HANG_SECONDS) for _ in range(2)]
    yield sessions
    for session in sessions:
        await session.close()


async def test_an_account_belongs_to_one_session_at_a_time(two):
    first, second = two
    assert await first.try_account(1)
    assert not await second.try_account(1)
    assert await second.try_account(2)
    await first.close()
    assert await second.try_account(1)


async def test_a_content_lock_is_exclusive_between_sessions(two):
    first, second = two
    assert await first.try_content(HASH)
    assert not await second.try_content(HASH)
    await first.release_content(HASH)
    assert await second.try_content(HASH)


async def test_account_and_content_locks_are_separate_key_spaces(two):
    first, second = two
    assert await first.try_account(1)
    assert await second.try_content(bytes(7) + b"\x01" + bytes(24))


async def test_a_killed_backend_is_noticed_at_once_and_everything_after_it_fails(two, database_url):
    first, second = two
    assert await first.try_content(HASH)
    connection = await asyncpg.connect(database_url)
    await connection.execute(_KILL_LOCK_HOLDERS)
    await connection.close()
    async with asyncio.timeout(HANG_SECONDS):
        await first.lost.wait()
    with pytest.raises(LeaseLostError):
        await first.heartbeat("SELECT 1")
    assert await second.try_content(HASH)


async def test_a_connection_that_does_not_answer_in_time_is_given_up(database_url):
    session = await LockSession.open(database_url, answer_within=NO_PATIENCE)
    slow = asyncio.create_task(session.ask("SELECT pg_sleep(30)"))
    await settle()
    queued = asyncio.create_task(session.heartbeat("SELECT 1"))
    for task in (slow, queued):
        with pytest.raises(LeaseLostError):
            await task
    assert session.lost.is_set()
    await session.close()


async def test_whoever_waits_for_a_lock_session_hears_that_it_was_closed(database_url):
    session = await LockSession.open(database_url, answer_within=HANG_SECONDS)
    waiting = [asyncio.create_task(session.ask("SELECT pg_sleep(600)")) for _ in range(2)]
    await settle()
    await session.close()
    async with asyncio.timeout(HANG_SECONDS):
        for task in waiting:
            with pytest.raises(LeaseLostError):
                await task
        with pytest.raises(LeaseLostError):
            await session.release_content(HASH)


async def test_no_server_is_a_reason_to_try_again(unused_tcp_port):
    with pytest.raises(RetryableError):
        await LockSession.open(f"postgresql://x:y@127.0.0.1:{unused_tcp_port}/z", answer_within=HANG_SECONDS)


async def test_a_lock_that_is_granted_to_somebody_who_was_cancelled_goes_back(two, database_url):
    locks = await AccountLocks.open(database_url, 1, answer_within=HANG_SECONDS)
    asking = asyncio.create_task(locks.try_content(HASH))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    # Whatever was queued behind it is answered after it.
    assert await locks.try_content(HASH[::-1])
    async with asyncio.timeout(HANG_SECONDS):
        while not await two[0].try_content(HASH):  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.01)
    await locks.close()


async def test_a_lock_handed_over_while_its_connection_is_replaced_stays_with_its_next_holder(
    two, database, database_url
):
    worker_id = uuid4()
    await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO accounts (phone, state) VALUES ('+1', 'ready')")
    locks = await AccountLocks.open(database_url, 1, answer_within=HANG_SECONDS)
    seen = await look(database, 1, patience=5)
    assert await locks.take(seen)
    assert await locks.begin(seen, worker_id, 5)
    assert await locks.try_content(HASH)
    await connection.execute(_KILL_LOCK_HOLDERS)
    await connection.close()
    await locks.lost.wait()

    async def hand_over():
        await locks.certain()
        letting_go = asyncio.create_task(locks.release_content(HASH))
        granted = await asyncio.create_task(locks.try_content(HASH))
        await letting_go
        return granted

    handing_over = asyncio.create_task(hand_over())
    await settle()
    async with asyncio.timeout(HANG_SECONDS):
        while not await _renewed(locks):  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.01)
    assert await handing_over
    assert not await two[0].try_content(HASH)
    await locks.close()


async def _renewed(locks):
    with contextlib.suppress(RetryableError):
        return await locks.renew()
    return False
