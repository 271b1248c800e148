"""What a PostgreSQL server says about itself that our promises depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg
from sqlalchemy import text

from worker.store.address import driver_dsn
from worker.store.migrations import current, head

if TYPE_CHECKING:
    from worker.store.database import Database


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


async def read_server_facts(database: Database) -> ServerFacts:
    """Ask the server."""
    async with database.reading() as connection:
        row = (
            await connection.execute(
                text(
                    "SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,"
                    " current_setting('synchronous_commit') AS sync_commit,"
                    " extract(epoch FROM clock_timestamp())::float8 AS now"
                )
            )
        ).one()
    return ServerFacts(
        version=row.version.split()[0],
        fsync=row.fsync == "on",
        sync_commit=row.sync_commit != "off",
        server_time=row.now,
        schema=await current(database),
        wanted_schema=head(),
        shares_backends=await _shares_backends(driver_dsn(database.address)),
    )


async def _shares_backends(dsn: str) -> bool:
    """Whether two open connections meet the same server process: then a pooler multiplexes transactions."""
    # statement_cache_size=0: a pooler in transaction mode has no prepared statements to offer.
    first = await asyncpg.connect(dsn, timeout=5, statement_cache_size=0)
    try:
        first_pid = await first.fetchval("SELECT pg_backend_pid()")
        second = await asyncpg.connect(dsn, timeout=5, statement_cache_size=0)
        try:
            async with second.transaction():
                return bool(first_pid == await second.fetchval("SELECT pg_backend_pid()"))
        finally:
            await second.close()
    finally:
        await first.close()
