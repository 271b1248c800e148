"""What a PostgreSQL server says about itself that our promises depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.store.connect import connect_plainly
from worker.store.migrations import head

if TYPE_CHECKING:
    import asyncpg


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Settings, version, clock, schema, and whether our sessions are our own."""

    version: str
    fsync: bool
    sync_commit: bool
    server_time: float
    schema: str | None
    wanted_schema: str
    shares_backends: bool


async def read_server_facts(address: str) -> ServerFacts:
    """Ask the server, in a way that works through any pooler."""
    first, second = await connect_plainly(address), await connect_plainly(address)
    try:
        shared = await _share_backends(first, second)
        # One transaction, so that all answers come from one session.
        async with first.transaction(readonly=True):
            row = await first.fetchrow(
                "SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,"
                " current_setting('synchronous_commit') AS sync_commit,"
                " extract(epoch FROM clock_timestamp())::float8 AS now,"
                " to_regclass('alembic_version') IS NOT NULL AS has_schema"
            )
            assert row is not None, "a SELECT without FROM has one row"
            schema = (
                await first.fetchval("SELECT version_num FROM alembic_version") if row["has_schema"] else None
            )
    finally:
        first.terminate()
        second.terminate()
    return ServerFacts(
        version=row["version"].split()[0],
        fsync=row["fsync"] == "on",
        sync_commit=row["sync_commit"] != "off",
        server_time=row["now"],
        schema=schema,
        wanted_schema=head(),
        shares_backends=shared,
    )


async def _share_backends(first: asyncpg.Connection, second: asyncpg.Connection) -> bool:
    """Whether a server process serves now the one, now the other: a pooler that multiplexes transactions.

    The second keeps its process busy while the first asks again, so that a pooler which deals its processes
    out in turn is found as well as one that hands out the last used.
    """
    ask = "SELECT pg_backend_pid()"
    before = await first.fetchval(ask)
    async with second.transaction():
        others = await second.fetchval(ask)
        async with first.transaction():
            after = await first.fetchval(ask)
    return bool(before != after or others in (before, after))
