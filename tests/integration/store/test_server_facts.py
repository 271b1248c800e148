"""What a server says about itself, read through whatever stands before it."""

import asyncpg
from pooler import pgbouncer
from sqlalchemy.engine import make_url

from worker.store.server_facts import read_server_facts


async def test_a_good_server_keeps_its_promises(database_url):
    facts = await read_server_facts(database_url)
    assert (facts.fsync, facts.sync_commit, facts.shares_backends) == (True, True, False)
    assert facts.schema == facts.wanted_schema


async def test_a_database_without_schema_has_none(empty_database_url):
    assert (await read_server_facts(empty_database_url)).schema is None


async def test_commits_that_do_not_wait_for_the_disk_are_found(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"ALTER DATABASE {make_url(database_url).database} SET synchronous_commit = off")
    await connection.close()
    assert (await read_server_facts(database_url)).sync_commit is False


async def test_a_transaction_pooler_is_found_and_a_session_pooler_accepted(database_url):
    for pool_mode, shares in (("transaction", True), ("session", False)):
        with pgbouncer(database_url, pool_mode) as address:
            # What the first visit left on the pooler's connections must not mislead the second.
            for _ in range(2):
                facts = await read_server_facts(address)
                assert facts.shares_backends is shares
                assert facts.schema == facts.wanted_schema
