"""The governor while PostgreSQL is gone: a line that is really cut."""

import asyncio

import asyncpg
import pytest
from cuttable_line import CuttableLine
from hang_guard import HANG_SECONDS
from postgres_place import over_a_line

from worker.clock import SystemClock
from worker.domain.calls import Call
from worker.errors import NotBeforeError, UserError
from worker.flow.governor import Governor
from worker.flow.keeper import Keeper
from worker.flow.parts import BlockCache, FileParts
from worker.store.database import Database
from worker.store.governor_store import GovernorStore


@pytest.fixture
async def sql(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute("INSERT INTO accounts (phone) VALUES ('+1')")
    yield connection
    await connection.close()


@pytest.fixture
async def line(database_url):
    line = CuttableLine(database_url)
    await line.mend()
    yield line
    await line.cut()


@pytest.fixture
async def store(database_url, line, sql):
    database = Database(over_a_line(database_url, line.port))
    yield GovernorStore(database, retention_days=7)
    await database.close()


async def test_g16_with_postgresql_gone_calls_stop_at_once_and_resume_by_themselves(store, line):
    governor, started = Governor(store), []

    async def work():
        started.append(True)

    await governor.call(Call(1, "messages.search"), work)
    await line.cut()
    with pytest.raises(NotBeforeError):
        await governor.call(Call(1, "messages.search"), work, patience=0)
    waiting = asyncio.create_task(governor.call(Call(1, "messages.search"), work, patience=600))
    await line.mend()
    await asyncio.wait_for(waiting, HANG_SECONDS)
    assert len(started) == 2


async def test_g16_a_flood_met_while_postgresql_is_gone_is_recorded_when_it_is_back(store, line, sql):
    governor = Governor(store)

    async def refused():
        await line.cut()
        raise UserError("FLOOD_WAIT_600")

    with pytest.raises(NotBeforeError) as flood:
        await governor.attempt(Call(1, "messages.search"), refused)
    assert flood.value.seconds >= 601
    await line.mend()
    with pytest.raises(NotBeforeError) as later:
        await governor.attempt(Call(1, "messages.search"), refused, patience=5)
    assert later.value.seconds > 500
    assert await sql.fetchval("SELECT wait_seconds FROM flood_wait_state") == 600


async def test_g16_with_postgresql_gone_parts_stop_within_a_bounded_time_and_resume_by_themselves(
    store, line
):
    clock = SystemClock()
    governor, blocks = Governor(store), BlockCache(store, clock, trusted_for=0.5)
    keeper = Keeper(governor, blocks, clock, interval=0.05)
    keeping = asyncio.create_task(keeper.run())
    parts = FileParts(governor, blocks, Call(1, "upload.getFile"), clock, narrow=lambda: None)
    await asyncio.wait_for(parts.permit(), HANG_SECONDS)
    await line.cut()

    async def stopped():
        while blocks.free(1, "upload.getFile"):
            await clock.sleep(0.01)

    await asyncio.wait_for(stopped(), HANG_SECONDS)
    permitted = asyncio.create_task(parts.permit())
    await line.mend()
    await asyncio.wait_for(permitted, HANG_SECONDS)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
