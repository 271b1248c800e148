"""A line to a loopback Telegram on which somebody else sits, who reads everything and writes what he likes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

ABRIDGED, INTERMEDIATE = b"\xef", b"\xee" * 4
KEY_UNKNOWN = (-404).to_bytes(4, "little", signed=True)


@dataclass
class Passage:
    """One connection through the enemy, from the first byte of the client on."""

    framing: bytes
    packets: int = 0

    @property
    def is_for_files(self) -> bool:
        """The client library speaks the abridged framing; file parts go by the intermediate one."""
        return self.framing == INTERMEDIATE

    def frame(self, packet: bytes) -> bytes:
        """A packet of the server's, as this connection frames it."""
        if self.is_for_files:
            return len(packet).to_bytes(4, "little") + packet
        words = len(packet) // 4
        return (bytes([words]) if words < 127 else b"\x7f" + words.to_bytes(3, "little")) + packet

    @property
    def quick_ack(self) -> bytes:
        """Four bytes with the highest bit set where a length should stand; the framings differ in the order."""
        return b"\x01\x02\x03\x84" if self.is_for_files else b"\x84\x03\x02\x01"


def let_pass(passage: Passage, packet: bytes) -> bytes | None:
    """What an honest line does."""
    return passage.frame(packet)


@dataclass
class EnemyLine:
    """Hands on what clients say, and has ``tamper`` say what becomes of each packet of the server.

    ``tamper`` returns the bytes to hand on, or None to hang up. ``answer`` may answer a connection in the
    server's place; returning None lets the server do it.
    """

    target: tuple[str, int]
    tamper: Callable[[Passage, bytes], bytes | None] = let_pass
    answer: Callable[[Passage], bytes | None] = lambda _: None
    port: int = 0
    passages: list[Passage] = field(default_factory=list)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._relay(reader, writer)
        with contextlib.suppress(OSError):
            writer.close()
        self._writers.discard(writer)

    def cut(self) -> None:
        """Drop every connection; others are taken."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(1)
        if first != ABRIDGED:
            first += await reader.readexactly(3)
        passage = Passage(first)
        self.passages.append(passage)
        if (said := self.answer(passage)) is not None:
            # Once the client has spoken, as a server would; and it is the client who hangs up.
            while await reader.read(65536):
                writer.write(said)
                await writer.drain()
                said = b""
            return
        far_reader, far_writer = await asyncio.open_connection(*self.target)
        self._writers.add(far_writer)
        far_writer.write(first)
        try:
            await asyncio.gather(
                _pump(reader, far_writer), self._spoil(passage, far_reader, writer), return_exceptions=True
            )
        finally:
            self._writers.discard(far_writer)
            far_writer.close()

    async def _spoil(self, passage, reader, writer) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                packet = await reader.readexactly(await _length(passage, reader))
                passage.packets += 1
                said = self.tamper(passage, packet)
                if said is None:
                    break
                writer.write(said)
                await writer.drain()
        writer.transport.abort()


async def _length(passage: Passage, reader: asyncio.StreamReader) -> int:
    if passage.is_for_files:
        return int.from_bytes(await reader.readexactly(4), "little")
    words = (await reader.readexactly(1))[0]
    if words == 127:
        words = int.from_bytes(await reader.readexactly(3), "little")
    return words * 4


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


@contextlib.asynccontextmanager
async def enemy_between(host: str, port: int) -> AsyncIterator[EnemyLine]:
    """An enemy before this server, who is honest until told otherwise."""
    line = EnemyLine((host, port))
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        line.cut()
