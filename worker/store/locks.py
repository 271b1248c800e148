"""One connection that holds advisory locks, and belongs to one account's work and to nothing else.

One task owns the connection: lock, unlock and heartbeat are queued to it, heartbeats first. A connection that
does not answer in time is terminated, not closed politely, and everything it held is gone with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from typing import Any

import asyncpg

from worker import faults
from worker.domain.content import lock_key
from worker.errors import LeaseLostError, WorkerTroubleError
from worker.store.address import driver_dsn

# The first number of the two-number form; content hashes use the one-number form, which is another key space.
ACCOUNT_CLASS = 1_094_927_702
_CONNECT_SECONDS = 5.0
_URGENT, _ORDINARY = 0, 1
_TROUBLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
_SESSION = {
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def account_locks(lock: str) -> str:
    """SQL, to stand after FROM and to be gone on with by AND: all sessions that hold an account's lock."""
    return f"""pg_locks {lock} WHERE {lock}.locktype = 'advisory' AND {lock}.granted AND {lock}.objsubid = 2
          AND {lock}.classid = CAST({ACCOUNT_CLASS} AS oid)
          AND {lock}.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


def account_is_locked(account_id: str) -> str:
    """SQL: whether a session holds the lock of this account. That of a process that was killed does not."""
    return f"""EXISTS (
        SELECT FROM {account_locks("l")} AND l.objid = CAST(CAST({account_id} AS int) AS oid))"""


class LockSession:
    """What one connection holds, for as long as it lives."""

    def __init__(self, connection: asyncpg.Connection[Any], name: str, *, answer_within: float) -> None:
        self.name = name
        self._connection = connection
        self._answer_within = answer_within
        self._queue: asyncio.PriorityQueue[tuple[int, int, str, tuple[Any, ...], asyncio.Future[Any]]] = (
            asyncio.PriorityQueue()
        )
        self._order = itertools.count()
        self.lost = asyncio.Event()
        connection.add_termination_listener(lambda _: self.lost.set())
        self._owner = asyncio.create_task(self._serve(), name="lock connection")

    @classmethod
    async def open(cls, address: str, *, answer_within: float) -> LockSession:
        """Connect. ``answer_within`` bounds every later statement."""
        # A name of its own, by which a successor can end this session if the server still takes it for alive.
        name = f"archive-fleet locks {secrets.token_hex(8)}"
        try:
            connection = await asyncpg.connect(
                driver_dsn(address),
                timeout=_CONNECT_SECONDS,
                server_settings={"application_name": name, **_SESSION},
                statement_cache_size=0,
            )
        except _TROUBLE as error:
            raise WorkerTroubleError("no connection for locks could be made") from error
        return cls(connection, name, answer_within=answer_within)

    async def try_account(self, account_id: int) -> bool:
        """Become the only process that runs this account, or learn at once that another one does."""
        with faults.around("lock.account"):
            return bool(
                await self.ask("SELECT pg_try_advisory_lock($1::int, $2::int)", ACCOUNT_CLASS, account_id)
            )

    async def release_account(self, account_id: int) -> None:
        """Let others run an account that was locked beside this session's own."""
        with faults.around("lock.account_release"):
            await self.ask("SELECT pg_advisory_unlock($1::int, $2::int)", ACCOUNT_CLASS, account_id)

    async def try_content(self, content_hash: bytes) -> bool:
        """Become the only one that may publish this content, or learn at once that another one may.

        Advisory locks are re-entrant within a session: asking twice succeeds twice.
        """
        with faults.around("lock.content"):
            return bool(await self.ask("SELECT pg_try_advisory_lock($1::bigint)", lock_key(content_hash)))

    async def release_content(self, content_hash: bytes) -> None:
        """Let others publish it; called once for each lock that was granted."""
        with faults.around("lock.release"):
            await self.ask("SELECT pg_advisory_unlock($1::bigint)", lock_key(content_hash))

    async def heartbeat(self, statement: str, *arguments: Any) -> Any:
        """Have a statement answered: the connection, and with it every lock, was there when it was sent."""
        with faults.around("lock.heartbeat"):
            return await self.ask(statement, *arguments, urgency=_URGENT)

    async def end_holder(self, statement: str, *arguments: Any) -> bool:
        """End the session that holds an account's lock, if ``statement`` finds it; whether it did."""
        with faults.around("lock.end_holder"):
            return bool(await self.ask(statement, *arguments))

    async def begin(self, statement: str, *arguments: Any) -> Any:
        """Write down who holds the lock, on the connection that holds it."""
        with faults.around("lock.begin"):
            return await self.ask(statement, *arguments)

    async def end_session(self, name: str) -> None:
        """End the session of this name, if the server still keeps it: a line that went silent leaves one."""
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
        with faults.around("lock.end_session"):
            await self.ask(query, name)

    async def close(self) -> None:
        """Give everything back."""
        was_lost = self.lost.is_set()
        # Whoever asks from here on is told so, and so is whoever waits for an answer.
        self.lost.set()
        self._owner.cancel()
        # Not awaited itself: its cancellation could not be told from one of whoever closes.
        await asyncio.wait({self._owner})
        self._fail_the_rest()
        if not was_lost:
            with contextlib.suppress(*_TROUBLE):
                await self._connection.close(timeout=self._answer_within)
                return
        self._connection.terminate()

    async def ask(self, query: str, *arguments: Any, urgency: int = _ORDINARY) -> Any:
        """One value from the server; ``LeaseLostError`` if the connection, and all it held, is gone."""
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
            try:
                await self._answer(query, arguments, answer)
            finally:
                if not answer.done():
                    answer.set_exception(LeaseLostError("the lock connection was closed"))

    async def _answer(self, query: str, arguments: tuple[Any, ...], answer: asyncio.Future[Any]) -> None:
        try:
            result = await self._connection.fetchval(query, *arguments, timeout=self._answer_within)
        except Exception as error:  # noqa: BLE001 - the driver has errors of every kind for a line that breaks
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
