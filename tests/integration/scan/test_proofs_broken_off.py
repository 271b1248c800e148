"""What breaks a proof off from outside is no try of it."""

import contextlib
from types import SimpleNamespace

import asyncpg
from source_rows import open_source, posted

from worker.config.settings import LeaseSettings
from worker.errors import UnreachableError
from worker.pipeline.prove import prove_some
from worker.store.set_aside import keep_page


async def test_w10_a_connection_that_keeps_breaking_is_no_try_of_a_proof(
    database, database_url, advance_fleet_time
):
    source = await open_source(database, database_url)
    async with database.transaction("test.page") as connection:
        await keep_page(connection, source, [posted(1, "a.part1.rar"), posted(2, "a.part2.rar")])

    async def messages(*_):
        raise UnreachableError("the connection to Telegram broke 9 times")

    deps = SimpleNamespace(
        database=database,
        account=SimpleNamespace(id=1),
        settings=SimpleNamespace(lease=LeaseSettings()),
        gateway=SimpleNamespace(messages=messages),
        trust=SimpleNamespace(is_trusted=True),
    )
    for _ in range(8):
        with contextlib.suppress(UnreachableError):
            await prove_some(deps)
        await advance_fleet_time(60)
    raw = await asyncpg.connect(database_url)
    unended = await raw.fetchval("SELECT max(unended) FROM archive_sets")
    await raw.close()
    assert unended == 0
