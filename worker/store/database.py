"""Connections to PostgreSQL for everything but locks.

Pooled connections are handed from one borrower to the next, so nothing that lives in a session may be kept on
them: advisory locks have a connection of their own (``worker.store.locks``).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from worker import faults
from worker.errors import OutcomeUnknownError, RetryableError, UserError
from worker.store.address import engine_url, printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SUPPORTED_MAJORS = range(15, 19)
_CONNECT_SECONDS = 5.0
_COMMAND_SECONDS = 30.0
_POOL_SIZE = 5


class Database:
    """A bounded pool, and transactions that have a name."""

    def __init__(self, address: str, *, pool_size: int = _POOL_SIZE) -> None:
        self.address = address
        self._engine = create_async_engine(
            engine_url(address),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=_COMMAND_SECONDS,
            pool_pre_ping=True,
            connect_args={
                "timeout": _CONNECT_SECONDS,
                "command_timeout": _COMMAND_SECONDS,
                "server_settings": {
                    "application_name": "archive-fleet",
                    # A client that vanishes inside a transaction must not hold its row locks for long.
                    "idle_in_transaction_session_timeout": "60s",
                    "lock_timeout": "15s",
                },
            },
        )

    @contextlib.asynccontextmanager
    async def transaction(self, name: str) -> AsyncIterator[AsyncConnection]:
        """One transaction, committed at the end of the block; failpoints ``db.<name>`` stand around it.

        When the connection breaks while the commit is under way its outcome is not known: the caller gets
        ``OutcomeUnknownError`` and has to read back what is there.
        """
        async with self._connect() as connection:
            await connection.begin()
            try:
                yield connection
            except BaseException:
                with contextlib.suppress(DBAPIError, OSError):
                    await connection.rollback()
                raise
            faults.reach(f"db.{name}", "before")
            try:
                await connection.commit()
            except (DBAPIError, OSError, TimeoutError) as error:
                if is_disconnect(error):
                    raise OutcomeUnknownError(f"the commit of {name} got no answer") from error
                raise
            faults.reach(f"db.{name}", "after")

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection for queries that change nothing."""
        async with self._connect() as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._engine.connect() as connection:
                yield connection
        except (DBAPIError, OSError, TimeoutError) as error:
            if is_disconnect(error):
                raise RetryableError(f"PostgreSQL at {printable(self.address)} is not reachable") from error
            raise

    async def close(self) -> None:
        """Close every pooled connection."""
        await self._engine.dispose()


def is_disconnect(error: BaseException) -> bool:
    """Whether the connection, not the statement, is at fault."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)
    return isinstance(error, OSError | TimeoutError | asyncpg.InterfaceError)


async def check_server(database: Database) -> int:
    """The server's major version; a clear error if it cannot be reached or is not one we know."""
    where = printable(database.address)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS + 2), database.reading() as connection:
            number: int = await connection.scalar(text("SELECT current_setting('server_version_num')::int"))
    except RetryableError as error:
        raise _unreachable(where, error.__cause__ or error) from None
    except (DBAPIError, OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise _unreachable(where, error) from None
    major = number // 10000
    if major not in SUPPORTED_MAJORS:
        raise UserError(f"{where} is PostgreSQL {major}", remedy="versions 15 to 18 are supported")
    return major


def _unreachable(where: str, error: BaseException) -> UserError:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    origin = cause.__cause__ or cause
    if isinstance(origin, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return UserError(
            f"PostgreSQL refused the login at {where}", remedy="check user and password in the address"
        )
    if isinstance(origin, asyncpg.InvalidCatalogNameError):
        return UserError(f"there is no such database: {where}", remedy="create it, or correct the address")
    if isinstance(origin, socket.gaierror):
        return UserError(f"the host of {where} is not known", remedy="check the address")
    reason = "no answer in time" if isinstance(origin, TimeoutError) else str(origin).splitlines()[0]
    return UserError(
        f"cannot reach {where}: {reason}", remedy="is PostgreSQL running there? check database_url"
    )
