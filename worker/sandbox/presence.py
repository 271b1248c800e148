"""Who is connected: connections by key and by address, and the lines they share."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from worker.sandbox.shaping import Line, Shape

if TYPE_CHECKING:
    from worker.sandbox.connection import Connection
    from worker.sandbox.ledger import Ledger
    from worker.sandbox.ledger.rows import Key

GOODBYE_SECONDS = 5.0


class Presence:
    """Every open connection, and what follows from two of them being open at once."""

    def __init__(self, ledger: Ledger, shape: Shape, limit_per_address: int) -> None:
        self._ledger = ledger
        self._shape = shape
        self._limit = limit_per_address
        self._tasks: set[asyncio.Task[None]] = set()
        self._addresses: Counter[str] = Counter()
        self._connections: dict[int, set[Connection]] = {}
        self._account_lines: dict[int, Line] = {}

    def line(self) -> Line:
        return Line(self._shape)

    def reshape(self, shape: Shape) -> None:
        """Shape the connections made from here on."""
        self._shape = shape
        self._account_lines.clear()

    def is_crowded(self, address: str) -> bool:
        """Whether an address has as many connections as it may."""
        return 0 < self._limit <= self._addresses[address]

    def arrived(self, address: str, task: asyncio.Task[None]) -> None:
        self._addresses[address] += 1
        self._tasks.add(task)

    def gone(self, address: str, task: asyncio.Task[None]) -> None:
        self._addresses[address] -= 1
        self._tasks.discard(task)

    def joined(self, connection: Connection, key: Key) -> None:
        """A connection has proved its key. The same key from a second address at once kills it for good."""
        others = self._connections.setdefault(key.key_id, set())
        if any(other.address != connection.address for other in others):
            self._ledger.keys.kill(key.key_id, "AUTH_KEY_DUPLICATED")
        others.add(connection)
        connection.journal_id = self._ledger.journal.connected(key.key_id, key.user_id, connection.address)
        if key.user_id is not None:
            self._share_line(connection, key.user_id)

    def _share_line(self, connection: Connection, user_id: int) -> None:
        """All connections of an account share its bandwidth."""
        shared = Shape(mbps=self._shape.account_mbps)
        connection.line.shared = self._account_lines.setdefault(user_id, Line(shared))

    def left(self, connection: Connection) -> None:
        self._connections[connection.key_id].discard(connection)
        self._ledger.journal.disconnected(connection.journal_id)

    def authorised(self, key_id: int, user_id: int) -> None:
        """A key has logged in: its open connections belong to the account from here on."""
        for connection in self._connections.get(key_id, ()):
            self._ledger.journal.authorised(connection.journal_id, user_id)
            self._share_line(connection, user_id)

    def of(self, user_id: int) -> list[Connection]:
        """Return the open connections of an account."""
        keys = self._ledger.keys.of(user_id)
        return [connection for key_id in keys for connection in self._connections.get(key_id, ())]

    async def send_home(self) -> None:
        """Cut every connection and wait until its end is in the journal."""
        for connections in self._connections.values():
            for connection in connections:
                connection.hang_up()
        if self._tasks:
            _, stuck = await asyncio.wait(self._tasks, timeout=GOODBYE_SECONDS)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
