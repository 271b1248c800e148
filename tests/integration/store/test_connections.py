"""Pooled connections from one use to the next: those that broke are not used again, and the others are asked no twice."""

import asyncio
from functools import partial

import asyncpg
import pytest
from breakable_line import line_to
from hang_guard import HANG_SECONDS, until
from sqlalchemy import text

from worker.errors import CommitUnknownError, WorkerTroubleError
from worker.store import database as module
from worker.store.connect import connect
from worker.store.database import Database


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def single(database_url):
    """A database with one connection, which every use takes up."""
    opened = Database(database_url, pool_size=1)
    yield opened
    await opened.close()


@pytest.fixture
async def far(database_url, monkeypatch):
    """One connection, at the end of a line that can fall silent; a silence is soon noticed."""
    monkeypatch.setattr(module, "connect", partial(connect, command_seconds=2.0))
    async with line_to(database_url) as (line, address):
        opened = Database(address, pool_size=1)
        yield line, opened
        await opened.close()
        await line.mend()


async def _driver(connection):
    return (await connection.get_raw_connection()).driver_connection


async def _number(connection):
    return await connection.scalar(text("SELECT pg_backend_pid()"))


async def _used(database):
    """What the database was used on, and its number for that."""
    async with database.reading() as connection:
        return await _driver(connection), await _number(connection)


async def test_a_backend_that_was_terminated_between_two_uses_costs_no_error(single, raw):
    driver, number = await _used(single)
    await raw.execute("SELECT pg_terminate_backend($1)", number)

    async def is_noticed():
        return driver.is_closed()

    await until(is_noticed)
    assert (await _used(single))[1] != number
    assert not single.was_away(60), "nothing was asked of it meanwhile"


async def test_a_server_that_was_away_between_two_uses_costs_no_error(far):
    line, database = far
    driver, number = await _used(database)
    await line.cut()

    async def is_noticed():
        return driver.is_closed()

    await until(is_noticed)
    await line.mend()
    assert (await _used(database))[1] != number


async def _read(database):
    async with database.reading() as connection:
        await _number(connection)


async def _write(database):
    async with database.transaction("test.write") as connection:
        await connection.execute(text("SELECT 1"))
        await connection.execute(text("SELECT 2"))


@pytest.mark.parametrize("use", [_read, _write])
async def test_a_line_that_was_silent_once_is_not_used_again(far, use):
    line, database = far
    driver, _ = await _used(database)
    line.forget()
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(WorkerTroubleError):
            await use(database)
    assert driver.is_closed()
    assert database.was_away(60)
    assert (await _used(database))[0] is not driver


async def test_a_line_that_falls_silent_at_a_commit_is_not_used_again(far):
    line, database = far
    driver, _ = await _used(database)
    with pytest.raises(CommitUnknownError):
        async with database.transaction("test.silence") as connection:
            await connection.execute(text("SELECT 1"))
            line.forget()
    assert driver.is_closed()
    assert (await _used(database))[0] is not driver


async def test_a_line_that_falls_silent_at_a_rollback_is_not_used_again(far):
    line, database = far
    driver, _ = await _used(database)
    with pytest.raises(LookupError):
        async with database.transaction("test.silence") as connection:
            await connection.execute(text("SELECT 1"))
            line.forget()
            raise LookupError
    assert driver.is_closed()
    assert database.was_away(60)
    assert (await _used(database))[0] is not driver


async def test_a_silent_line_is_not_asked_to_roll_back(far):
    line, database = far
    with pytest.raises(WorkerTroubleError):
        async with database.transaction("test.silence") as connection:
            await connection.execute(text("SELECT 1"))
            driver = await _driver(connection)
            asked = []
            driver.add_query_logger(lambda query: asked.append(query.query))
            line.forget()
            await connection.execute(text("SELECT 2"))
    assert not [query for query in asked if query.startswith("ROLLBACK")]


@pytest.mark.parametrize("use", [_read, _write])
async def test_whoever_is_cancelled_on_a_silent_line_leaves_it_to_nobody(far, use):
    line, database = far
    driver, _ = await _used(database)
    line.forget()
    using = asyncio.create_task(use(database))

    async def has_asked():
        return database._engine.pool.checkedout()

    await until(has_asked)
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert driver.is_closed()
    assert (await _used(database))[0] is not driver


async def test_a_cancellation_while_a_silent_line_is_given_up_leaves_a_place_for_the_next(far):
    line, database = far
    driver, _ = await _used(database)
    line.forget()
    using = asyncio.create_task(_read(database))

    async def is_given_up():
        return database.was_away(60)

    await until(is_given_up)
    using.cancel()
    await asyncio.gather(using, return_exceptions=True)
    async with asyncio.timeout(HANG_SECONDS):
        assert (await _used(database))[0] is not driver


async def test_what_undid_one_transaction_ends_no_connection_and_was_no_outage(single, raw):
    driver, _ = await _used(single)
    await raw.execute("INSERT INTO settings (key, value) VALUES ('held', '1')")
    async with raw.transaction():
        await raw.execute("UPDATE settings SET value = '2'")
        with pytest.raises(WorkerTroubleError, match="lock"):
            async with single.transaction("test.waits") as connection:
                await connection.execute(text("SELECT 1 FROM settings FOR UPDATE NOWAIT"))
    assert (await _used(single))[0] is driver
    assert not single.was_away(60)


async def test_a_value_that_the_driver_refuses_is_not_taken_for_an_outage(single):
    driver, _ = await _used(single)
    with pytest.raises(module.DBAPIError):
        async with single.reading() as connection:
            await connection.execute(text("SELECT :words"), {"words": "\ud800"})
    assert (await _used(single))[0] is driver
    assert not single.was_away(60)


async def test_reading_sends_nothing_to_begin_or_end_it_and_writing_still_does(single):
    driver, _ = await _used(single)
    asked = []
    driver.add_query_logger(lambda query: asked.append(query.query))
    await _read(single)
    assert asked == []
    with pytest.raises(LookupError):
        async with single.transaction("test.write") as connection:
            await connection.execute(text("SELECT 1"))
            raise LookupError
    begun, ended = asked
    assert (begun.split()[0], ended) == ("BEGIN", "ROLLBACK;")
    await _read(single)
    assert len(asked) == 2
