"""Advisory locks, on a connection that belongs to one account's work and to nothing else.

One task owns the connection: lock, unlock and heartbeat are queued to it, heartbeats first. A connection that
does not answer in time is terminated, not closed politely, and everything it held is gone with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import Any

import asyncpg

from worker import faults
from worker.domain.content import lock_key
from worker.errors import LeaseLostError, RetryableError
from worker.store.address import driver_dsn

# The first number of the two-number form; content hashes use the one-number form, which is another key space.
ACCOUNT_CLASS = 1_094_927_702
_CONNECT_SECONDS = 5.0
_URGENT, _ORDINARY = 0, 1
_SESSION = {
    "application_name": "archive-fleet locks",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


class LockSession:
    """The locks of one account's work, for as long as its connection lives."""

    def __init__(self, connection: asyncpg.Connection[Any], *, answer_within: float) -> None:
        self._connection = connection
        self._answer_within = answer_within
        self._queue: asyncio.PriorityQueue[tuple[int, int, str, tuple[Any, ...], asyncio.Future[Any]]] = (
            asyncio.PriorityQueue()
        )
        self._order = itertools.count()
        self._held: set[bytes] = set()
        self.lost = asyncio.Event()
        connection.add_termination_listener(lambda _: self.lost.set())
        self._owner = asyncio.create_task(self._serve(), name="lock connection")

    @classmethod
    async def open(cls, address: str, *, answer_within: float) -> LockSession:
        """Connect. ``answer_within`` bounds every later statement."""
        try:
            connection = await asyncpg.connect(
                driver_dsn(address),
                timeout=_CONNECT_SECONDS,
                server_settings=_SESSION,
                statement_cache_size=0,
            )
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise RetryableError("no connection for locks could be made") from error
        return cls(connection, answer_within=answer_within)

    async def try_account(self, account_id: int) -> bool:
        """Become the only process that runs this account, or learn at once that another one does."""
        with faults.around("lock.account"):
            return bool(
                await self._ask("SELECT pg_try_advisory_lock($1::int, $2::int)", ACCOUNT_CLASS, account_id)
            )

    async def release_account(self, account_id: int) -> None:
        """Let others run an account that was locked beside this session's own."""
        if not self.lost.is_set():
            with faults.around("lock.account_release"):
                await self._ask("SELECT pg_advisory_unlock($1::int, $2::int)", ACCOUNT_CLASS, account_id)

    async def try_content(self, content_hash: bytes) -> bool:
        """Become the only one that may publish this content, or learn at once that another one may."""
        # Advisory locks are re-entrant within a session: asking twice would succeed twice.
        if content_hash in self._held:
            return False
        with faults.around("lock.content"):
            granted = await self._ask("SELECT pg_try_advisory_lock($1::bigint)", lock_key(content_hash))
        if granted:
            self._held.add(content_hash)
        return bool(granted)

    async def release_content(self, content_hash: bytes) -> None:
        """Let others publish it; called once for each lock that was granted."""
        self._held.remove(content_hash)
        if not self.lost.is_set():
            with faults.around("lock.release"):
                await self._ask("SELECT pg_advisory_unlock($1::bigint)", lock_key(content_hash))

    async def heartbeat(self) -> None:
        """Make sure that the connection, and with it every lock, is still there."""
        await self._ask("SELECT 1", urgency=_URGENT)

    async def close(self) -> None:
        """Give everything back."""
        self._owner.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._owner
        if not self.lost.is_set():
            with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await self._connection.close(timeout=self._answer_within)
                return
        self._connection.terminate()

    async def _ask(self, query: str, *arguments: Any, urgency: int = _ORDINARY) -> Any:
        if self.lost.is_set():
            raise LeaseLostError("the lock connection is gone")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((urgency, next(self._order), query, arguments, answer))
        return await answer

    async def _serve(self) -> None:
        while True:
            _, _, query, arguments, answer = await self._queue.get()
            if answer.cancelled():
                continue
            await self._answer(query, arguments, answer)

    async def _answer(self, query: str, arguments: tuple[Any, ...], answer: asyncio.Future[Any]) -> None:
        try:
            result = await self._connection.fetchval(query, *arguments, timeout=self._answer_within)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            self._connection.terminate()
            self.lost.set()
            if not answer.done():
                answer.set_exception(LeaseLostError(f"the lock connection failed: {error!r}"))
            self._fail_the_rest()
        else:
            if not answer.done():
                answer.set_result(result)

    def _fail_the_rest(self) -> None:
        while not self._queue.empty():
            *_, answer = self._queue.get_nowait()
            if not answer.done():
                answer.set_exception(LeaseLostError("the lock connection is gone"))
