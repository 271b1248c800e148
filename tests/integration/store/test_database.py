"""Transactions with a name, and honest errors when the server goes away."""

import asyncio

import asyncpg
import pytest
from breakable_line import line_to
from fake_postgres import fake_postgres, refusal
from hang_guard import HANG_SECONDS
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError

from worker.errors import OutcomeUnknownError, RetryableError
from worker.store.database import Database


async def _kill_backends(url):
    connection = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def test_a_transaction_is_committed_at_its_end_and_rolled_back_on_an_error(database):
    async with database.transaction("keep") as connection:
        await connection.execute(text("INSERT INTO settings (key, value) VALUES ('kept', '1')"))
    with pytest.raises(LookupError):
        async with database.transaction("lose") as connection:
            await connection.execute(text("INSERT INTO settings (key, value) VALUES ('lost', '1')"))
            raise LookupError
    async with database.reading() as connection:
        assert (await connection.scalars(text("SELECT key FROM settings"))).all() == ["kept"]


async def test_a_refused_statement_is_not_taken_for_a_lost_connection(database):
    with pytest.raises(IntegrityError):
        async with database.transaction("twice") as connection:
            for _ in range(2):
                await connection.execute(text("INSERT INTO settings (key, value) VALUES ('same', '1')"))


async def test_a_connection_lost_before_the_commit_is_worth_a_retry_and_the_next_one_works(
    database, database_url
):
    with pytest.raises(RetryableError):
        async with database.transaction("broken") as connection:
            await connection.execute(text("INSERT INTO settings (key, value) VALUES ('lost', '1')"))
            await _kill_backends(database_url)
            await connection.execute(text("SELECT 1"))
    async with database.reading() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM settings")) == 0


async def test_a_connection_lost_at_the_commit_is_an_unknown_outcome(database, database_url):
    with pytest.raises(OutcomeUnknownError, match="the commit of doubtful got no answer"):
        async with database.transaction("doubtful") as connection:
            await connection.execute(text("INSERT INTO settings (key, value) VALUES ('doubtful', '1')"))
            await _kill_backends(database_url)


@pytest.mark.parametrize(
    ("sqlstate", "message"),
    [
        ("57P03", "the database system is starting up"),
        ("53300", "sorry, too many clients already"),
        ("57P01", "terminating connection due to administrator command"),
    ],
)
async def test_a_server_that_restarts_or_is_full_is_worth_a_retry(sqlstate, message):
    async with fake_postgres(refusal(sqlstate, message)) as address:
        database = Database(address)
        with pytest.raises(RetryableError, match="did not do it") as refused:
            async with database.reading():
                pass
        await database.close()
    assert "hunter2" not in str(refused.value)


async def test_a_wrong_password_is_not_worth_a_retry():
    async with fake_postgres(refusal("28P01", "password authentication failed")) as address:
        database = Database(address)
        with pytest.raises(DBAPIError, match="password authentication failed"):
            async with database.reading():
                pass
        await database.close()


async def test_closing_ends_in_time_though_the_server_says_nothing_any_more(database_url):
    async with line_to(database_url) as (line, address):
        database = Database(address)
        async with database.reading() as connection:
            await connection.execute(text("SELECT 1"))
        line.silence()
        async with asyncio.timeout(HANG_SECONDS):
            await database.close()
        await line.mend()
