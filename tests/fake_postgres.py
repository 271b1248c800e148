"""Just enough of PostgreSQL's protocol to greet a client: as any version, with any refusal, or not at all."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _parameter(name: str, value: str) -> bytes:
    return _message(b"S", f"{name}\0{value}\0".encode())


def greeting(version: str) -> bytes:
    """What a server of this version says after the start-up message."""
    return (
        _message(b"R", struct.pack("!I", 0))
        + _parameter("server_version", version)
        + _parameter("client_encoding", "UTF8")
        + _message(b"K", struct.pack("!II", 1, 1))
        + _message(b"Z", b"I")
    )


def refusal(sqlstate: str, message: str) -> bytes:
    """An error in place of a greeting."""
    return _message(b"E", f"SFATAL\0VFATAL\0C{sqlstate}\0M{message}\0\0".encode())


@contextlib.asynccontextmanager
async def fake_postgres(answer: bytes | None) -> AsyncIterator[str]:
    """The address of a server that gives this answer to every client; silent if there is none."""
    ending, visits = asyncio.Event(), set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.add(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            request = await reader.readexactly(length - 4)
            if request[:4] == struct.pack("!I", 80877103):  # asks for TLS
                writer.write(b"N")
                (length,) = struct.unpack("!I", await reader.readexactly(4))
                await reader.readexactly(length - 4)
            if answer is not None:
                writer.write(answer)
                await writer.drain()
            await ending.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        try:
            yield f"postgresql://fleet:hunter2@127.0.0.1:{port}/fleet"
        finally:
            ending.set()
            await asyncio.gather(*visits)
