"""How Alembic reaches the database.

``worker db upgrade`` passes the address in; ``alembic upgrade head``, called by hand, reads the settings.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from alembic import context
from sqlalchemy import pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from worker.config.load import load
from worker.errors import UserError
from worker.store.connect import connect
from worker.store.schema import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection

# Any number works as long as nothing else in this database locks it: "alembic" in ASCII, cut to 63 bits.
_MIGRATION_LOCK = int.from_bytes(b"alembic", "big")


def _address() -> str:
    if given := context.config.attributes.get("address"):
        return str(given)
    configured = load().settings.database_url
    if configured is None:
        raise UserError(
            "no database is configured", remedy="set WORKER_DATABASE_URL, or use: worker db upgrade"
        )
    return configured.get_secret_value()


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        # Held until the commit: whoever waits here finds the work done.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        context.run_migrations()


async def _online() -> None:
    address = _address()
    engine = create_async_engine(
        "postgresql+asyncpg://",
        # No deadline: an index on a big table takes its time, and so does waiting for another migration.
        async_creator=lambda: connect(address, command_seconds=None),
        poolclass=pool.NullPool,
    )
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_migrate)
            await connection.commit()
    finally:
        await engine.dispose()


if context.is_offline_mode():
    context.configure(dialect_name="postgresql", target_metadata=metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
else:
    asyncio.run(_online())
