"""In which order accounts are asked to do something for a command."""

import uuid

import asyncpg
import pytest
from hang_guard import HANG_SECONDS

from worker.store import workers
from worker.store.locks import LockSession
from worker.store.readers import readers_of_channels

KILLED, FREE, RUNNING = 1, 2, 3


@pytest.fixture
async def three(database, database_url):
    """The worker of the first account was killed: its lease still runs, its lock is gone."""
    worker_id = uuid.uuid4()
    await workers.register(database, worker_id, host="nas", pid=1, version="0", address=None)
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO accounts (phone, state) VALUES ('+1', 'ready'), ('+2', 'ready'), ('+3', 'ready')"
    )
    await connection.execute(
        "UPDATE accounts SET worker_id = $1, lease_until = fleet_now() + interval '1 minute' WHERE id <> 2",
        worker_id,
    )
    await connection.close()
    session = await LockSession.open(database_url, answer_within=HANG_SECONDS)
    assert await session.try_account(RUNNING)
    yield
    await session.close()


@pytest.mark.usefixtures("standing_fleet_time", "three")
async def test_a_free_account_is_asked_first_and_one_whose_lease_has_to_be_waited_out_last(database):
    found = await readers_of_channels(database, [])
    assert [(each.account.id, each.host) for each in found] == [
        (FREE, None),
        (RUNNING, "nas"),
        (KILLED, None),
    ]
