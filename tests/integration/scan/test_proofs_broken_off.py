"""What breaks a proof off from outside is no try of it."""

import asyncio
import contextlib
from types import SimpleNamespace

import asyncpg
import pytest
from breakable_line import line_to
from source_rows import open_source, posted

from worker.config.settings import Settings
from worker.errors import LeaseLostError, UnreachableError, WorkerTroubleError
from worker.pipeline.prove import prove_some
from worker.pipeline.tries import Tries
from worker.store.database import Database
from worker.store.set_aside import keep_page


@pytest.fixture
async def far(database_url):
    """The database at the end of a line that can be cut."""
    async with line_to(database_url) as (line, address):
        yield line, Database(address)
        await line.mend()


async def _unended(database_url) -> int:
    raw = await asyncpg.connect(database_url)
    found = await raw.fetchval("SELECT max(unended) FROM archive_sets")
    await raw.close()
    return found


def _deps(database, messages, *, is_trusted=True):
    return SimpleNamespace(
        database=database,
        account=SimpleNamespace(id=1),
        settings=Settings(),
        gateway=SimpleNamespace(messages=messages),
        trust=SimpleNamespace(is_trusted=is_trusted),
        tries=Tries(),
    )


async def test_w10_a_connection_that_keeps_breaking_is_no_try_of_a_proof(
    database, database_url, advance_fleet_time
):
    source = await open_source(database, database_url)
    async with database.transaction("test.page") as connection:
        await keep_page(connection, source, [posted(1, "a.part1.rar"), posted(2, "a.part2.rar")])

    async def messages(*_):
        raise UnreachableError("the connection to Telegram broke 9 times")

    deps = _deps(database, messages)
    for _ in range(8):
        with contextlib.suppress(UnreachableError):
            await prove_some(deps)
        await advance_fleet_time(60)
    assert await _unended(database_url) == 0


@pytest.mark.parametrize("trouble", [WorkerTroubleError, LeaseLostError, asyncio.CancelledError])
async def test_outages_of_the_database_are_no_tries_of_a_proof(
    database, database_url, far, advance_fleet_time, trouble
):
    source = await open_source(database, database_url)
    async with database.transaction("test.page") as connection:
        await keep_page(connection, source, [posted(1, "a.part1.rar"), posted(2, "a.part2.rar")])
    line, away = far

    async def messages(*_):
        await line.cut()
        if trouble is WorkerTroubleError:
            return {}  # what is found cannot be written down
        deps.trust.is_trusted = False
        raise trouble("the lease is lost")

    deps = _deps(away, messages)
    for _ in range(8):
        with pytest.raises(trouble):
            await prove_some(deps)
        await line.mend()
        await advance_fleet_time(60)
        deps.trust.is_trusted = True
    await deps.tries.settle()
    assert await _unended(database_url) == 0
    await away.close()
