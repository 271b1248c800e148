"""A line to a server that a test can cut, silence and mend."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from postgres_place import over_a_line, reach


class BreakableLine:
    """Listens on loopback and passes bytes on to a server, which may itself listen on a socket only."""

    def __init__(self, database_url: str) -> None:
        self._target = database_url
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._dead: list[asyncio.Event] = []
        self.port = 0

    async def mend(self) -> None:
        """Let bytes pass, and take connections again."""
        self._passing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Drop every connection and refuse others."""
        for passing in (self._passing, *self._dead):
            passing.set()
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    def silence(self) -> None:
        """Close nothing, and let nothing pass: a network that swallows every packet."""
        self._passing.clear()

    def forget(self) -> None:
        """Let nothing pass on the connections there are, for good, and take others: a router that forgot them."""
        self._passing.clear()
        self._dead.append(self._passing)
        self._passing = asyncio.Event()
        self._passing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = self._passing
        await passing.wait()
        try:
            far_reader, far_writer = await reach(self._target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(
                self._pass_on(reader, far_writer, passing), self._pass_on(far_reader, writer, passing)
            )
        finally:
            self._writers -= {writer, far_writer}

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passing: asyncio.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await passing.wait()
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()


@contextlib.asynccontextmanager
async def line_to(database_url: str) -> AsyncIterator[tuple[BreakableLine, str]]:
    """A line to this PostgreSQL, and the address to reach it at over the line."""
    line = BreakableLine(database_url)
    await line.mend()
    try:
        yield line, over_a_line(database_url, line.port)
    finally:
        await line.cut()
