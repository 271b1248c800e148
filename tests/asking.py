"""A connection for the questions of a test: one for many, since each new one costs the server a process."""

import asyncio

import asyncpg


class Asker:
    """Asks one database at a time, one question after another, and connects again where it was cut off."""

    def __init__(self) -> None:
        self._connection: asyncpg.Connection | None = None
        self._url = ""
        self._turn = asyncio.Lock()

    async def fetch(self, url: str, query: str, *arguments) -> list[asyncpg.Record]:
        async with self._turn:
            connection = await self._connected(url)
            try:
                return await connection.fetch(query, *arguments)
            except asyncpg.ConnectionDoesNotExistError:
                # The server ended this connection before it had read the question.
                connection = await self._connected(url)
                return await connection.fetch(query, *arguments)

    async def close(self) -> None:
        if self._connection is not None:
            # Whatever is under way is of no use to anybody.
            self._connection.terminate()

    async def _connected(self, url: str) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed() or url != self._url:
            await self.close()
            self._connection, self._url = await asyncpg.connect(url), url
        return self._connection
