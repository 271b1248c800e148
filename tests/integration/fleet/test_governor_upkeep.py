"""Old rows go once a day, whoever does it, and no block in force goes with them."""

import asyncio
from types import SimpleNamespace

import asyncpg
import pytest
from fleet_rows import insert_fleet

from worker.config.settings import Settings
from worker.fleet.upkeep import clean_if_due
from worker.store.database import Database


@pytest.fixture
def process(database):
    # All that cleaning up needs of a process.
    return SimpleNamespace(database=database, settings=Settings())


async def test_g10_it_is_done_once_a_day_and_leaves_what_is_in_force(
    process, database_url, advance_fleet_time
):
    await insert_fleet(database_url)
    cleaned = await clean_if_due(process)
    assert (cleaned.windows, cleaned.activity, cleaned.blocks) == (1, 1, 1)
    connection = await asyncpg.connect(database_url)
    try:
        assert await connection.fetchval("SELECT method FROM flood_wait_state") == "messages.getHistory"
    finally:
        await connection.close()
    assert await clean_if_due(process) is None
    await advance_fleet_time(86_000)
    assert await clean_if_due(process) is None
    await advance_fleet_time(400)
    assert await clean_if_due(process) is not None


async def test_g10_of_many_workers_one_does_it(database_url):
    databases = [Database(database_url) for _ in range(6)]
    try:
        processes = [SimpleNamespace(database=each, settings=Settings()) for each in databases]
        done = await asyncio.gather(*(clean_if_due(each) for each in processes))
    finally:
        for each in databases:
            await each.close()
    assert sum(each is not None for each in done) == 1
