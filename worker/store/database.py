"""Connections to PostgreSQL for everything but locks.

Pooled connections are handed from one borrower to the next, so nothing that lives in a session may be kept on
them: advisory locks have a connection of their own (``worker.store.locks``).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import weakref
from typing import TYPE_CHECKING

import asyncpg
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from worker import faults
from worker.clock import Clock, SystemClock
from worker.errors import CommitUnknownError, WorkerTroubleError
from worker.log import get_logger
from worker.store.address import printable
from worker.store.connect import COMMAND_SECONDS, connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import AdaptedConnection

log = get_logger(__name__)
_POOL_SIZE = 5
# A server that is there says goodbye within milliseconds.
_CLOSE_SECONDS = 3.0
# The driver's errors that pass by themselves, as when the server restarts.
_CONNECTION_TROUBLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    # A shutdown, a cancelled statement, an error of the server's disk.
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    # A primary that has become a standby.
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # The driver's own word for a line that broke in the middle of an answer.
    asyncpg.InternalClientError,
    asyncpg.InsufficientResourcesError,
)
# Of the same kind, though the server is there: the transaction is undone and may be tried again.
_CROWDING = (
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.SerializationError,
    # Every pooled connection was in use for as long as anybody should wait for one.
    PoolTimeoutError,
)
_TROUBLE = (DBAPIError, *_CONNECTION_TROUBLE, *_CROWDING)


class Database:
    """A bounded pool, and transactions that have a name."""

    def __init__(
        self,
        address: str,
        *,
        pool_size: int = _POOL_SIZE,
        clock: Clock = SystemClock(),  # noqa: B008 - has no state
    ) -> None:
        self.address = address
        self._clock = clock
        self._away_at = -math.inf
        self._opened: weakref.WeakSet[asyncpg.Connection] = weakref.WeakSet()
        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self._open,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=COMMAND_SECONDS,
            # The others are seldom needed: most statements are prepared once.
            pool_use_lifo=True,
        )
        # A server that goes says so. To ask it before every use would take as long as most queries do.
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)

    async def _open(self) -> asyncpg.Connection:
        connection = await connect(
            self.address,
            # A client that vanishes inside a transaction must not hold its row locks for long.
            idle_in_transaction_session_timeout="60s",
            lock_timeout="15s",
        )
        self._opened.add(connection)
        return connection

    @contextlib.asynccontextmanager
    async def transaction(self, name: str) -> AsyncIterator[AsyncConnection]:
        """One transaction, committed at the end of the block; failpoints ``db.<name>`` stand around it.

        When the connection breaks while the commit is under way its outcome is not known: the caller gets
        ``CommitUnknownError`` and has to read back what is there.
        """
        async with self._connect() as connection:
            await connection.begin()
            try:
                yield connection
            except BaseException as error:
                # A line that is silent would be silent once more. The server rolls back what loses its line.
                if not _lost_connection(error):
                    try:
                        await connection.rollback()
                    except _TROUBLE:
                        await self._drop(connection)
                raise
            faults.reach(f"db.{name}", "before")
            try:
                await connection.commit()
            except _TROUBLE as error:
                if _lost_connection(error):
                    raise CommitUnknownError(f"the commit of {name} got no answer") from error
                raise
            faults.reach(f"db.{name}", "after")

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection for queries that change nothing: nothing is sent to begin or end them."""
        async with self._connect() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._engine.connect() as connection:
                try:
                    yield connection
                except (CommitUnknownError, *_TROUBLE) as error:
                    if isinstance(error, CommitUnknownError) or _lost_connection(error):
                        await self._drop(connection)
                    raise
        except _TROUBLE as error:
            if _lost_connection(error):
                self._away_at = self._clock.monotonic()
            if is_disconnect(error):
                what = f"PostgreSQL at {printable(self.address)} did not do it: {_cause(error)}"
                raise WorkerTroubleError(what) from error
            raise

    async def _drop(self, connection: AsyncConnection) -> None:
        """Whoever borrows it next would wait for a line that may be silent for good."""
        self._away_at = self._clock.monotonic()
        await connection.invalidate()

    def was_away(self, within: float) -> bool:
        """Whether it did not answer this process at some moment of the last so many seconds."""
        return self._clock.monotonic() - self._away_at < within

    async def close(self) -> None:
        """Close every pooled connection, politely if the server still listens."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._engine.dispose()
        except TimeoutError:
            log.warning("database.silent_at_the_end", database=printable(self.address))
        finally:
            for connection in list(self._opened):
                if not connection.is_closed():
                    connection.terminate()


def _refuse_closed(connection: AdaptedConnection, _record: object, _proxy: object) -> None:
    """The pool opens another one in its place."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError


def _cause(error: BaseException) -> str:
    origin = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return str(origin).splitlines()[0][:200] if str(origin) else type(origin).__name__


def is_disconnect(error: BaseException) -> bool:
    """Whether it passes by itself: not the statement is at fault, but the connection or who else is there."""
    return isinstance(_driver_error(error), _CROWDING) or _lost_connection(error)


def _lost_connection(error: BaseException) -> bool:
    """Whether the connection is of no more use, or there is none to be had."""
    driver_error = _driver_error(error)
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return True
        if isinstance(error, InterfaceError | OperationalError):
            return True
    return isinstance(driver_error, _CONNECTION_TROUBLE)


def _driver_error(error: BaseException) -> BaseException | None:
    if not isinstance(error, DBAPIError):
        return error
    # SQLAlchemy's adapter raises its own class from the driver's.
    return error.orig.__cause__ if error.orig is not None else None
