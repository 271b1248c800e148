"""The process that parsers are forked from, forked itself from one that has them imported (``parser_server.py``).

It stands in for what the worker starts as an interpreter of its own, which takes longer to import the parsers than
most tests need them.
"""

import asyncio
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[1]


class ParserServer:
    """Starts such processes, on behalf of this process and of all that are forked from it."""

    def __init__(self) -> None:
        # Several may ask at a time: each request is one message.
        self._requests, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, str(ROOT / "tests" / "parser_server.py"), str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fileno(self) -> int:
        return self._requests.fileno()

    async def start_process(self, control: int) -> "ForkedProcess":
        """In place of :func:`worker.archives.nursery.start_process`."""
        heard, hearing = socket.socketpair()
        reading, writing = os.pipe()
        with hearing:
            socket.send_fds(self._requests, [b"{}\n"], [hearing.fileno(), control, writing])
        os.close(writing)
        stdout = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(reading, "rb")
        )
        return await ForkedProcess.hear(heard, stdout)


@functools.cache
def parser_server() -> ParserServer:
    """One for this whole process, and with it for those that it forks."""
    return ParserServer()


class ForkedProcess:
    """As much of :class:`asyncio.subprocess.Process` as the worker uses."""

    @classmethod
    async def hear(cls, heard: socket.socket, stdout: asyncio.StreamReader) -> Self:
        reader, writer = await asyncio.open_unix_connection(sock=heard)
        process = cls()
        process.stdout = stdout
        process.returncode = None
        process.pid = json.loads(await reader.readline())["pid"]
        process._ending = asyncio.create_task(process._hear_the_end(reader, writer))
        return process

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def _hear_the_end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        ended = json.loads(await reader.readline())
        writer.close()
        self.returncode = ended["exit"] if "exit" in ended else -ended["signal"]
        return self.returncode
