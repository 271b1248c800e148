"""Commands as processes of their own, forked from one that has everything imported (``fork_server.py``).

An interpreter of its own takes longer to import what a command needs than the command takes to run.
"""

import atexit
import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hang_guard import HANG_SECONDS

ROOT = Path(__file__).resolve().parents[1]


class Forked:
    """One process, and what was heard of it."""

    def __init__(self, hearing: socket.socket) -> None:
        self._heard = hearing.makefile("rb")
        hearing.close()
        self._end: dict[str, Any] | None = None
        self.pid: int = self._next()["pid"]

    def wait(self) -> dict[str, Any]:
        """How it ended: {"exit": code} or {"signal": number}."""
        while self._end is None:
            self.until_stopped()
        return self._end

    def until_stopped(self) -> dict[str, Any]:
        """Wait until it has stopped itself, and say {"stopped": True}; or say how it ended instead."""
        heard = self._next()
        if "stopped" not in heard:
            self._end = heard
            self._heard.close()
        return heard

    def _next(self) -> dict[str, Any]:
        line = self._heard.readline()
        if not line:
            raise ProcessLookupError("the fork server is gone, and with it what it had started")
        return json.loads(line)


class ForkServer:
    """Starts commands; they end with this process, whatever becomes of it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, str(ROOT / "tests" / "fork_server.py"), str(theirs.fileno())],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the tests; and no command may find a terminal that is not its own.
                start_new_session=True,
            )
        self.pid = self._server.pid
        self._asking = threading.Lock()

    def start(
        self,
        program: str,
        *argv: str,
        env: dict[str, str],
        cwd: Path = ROOT,
        streams: tuple[int, int, int],
        terminal: bool = False,
    ) -> Forked:
        ask = {"program": program, "argv": argv, "env": env, "cwd": str(cwd), "terminal": terminal}
        ours, theirs = socket.socketpair()
        with theirs, self._asking:
            message = json.dumps(ask).encode() + b"\n"
            sent = socket.send_fds(self._requests, [message], [theirs.fileno(), *streams])
            self._requests.sendall(message[sent:])
        return Forked(ours)

    def close(self) -> None:
        self._requests.close()
        self._server.wait(timeout=HANG_SECONDS)


@functools.cache
def fork_server() -> ForkServer:
    """One for this whole test process."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def plain_environment() -> dict[str, str]:
    """This process's, without any setting of the worker's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WORKER_")}


@contextlib.contextmanager
def nothing() -> Iterator[int]:
    """A stream that has nothing to read and forgets what is written."""
    stream = os.open(os.devnull, os.O_RDWR)
    try:
        yield stream
    finally:
        os.close(stream)


def start_sandbox(*arguments: str, log: Path | None = None) -> tuple[Forked, dict[str, Any]]:
    """A loopback Telegram, once it listens, and what it said about itself."""
    reading, writing = os.pipe()
    with nothing() as empty, contextlib.ExitStack() as opened:
        complaints = opened.enter_context(log.open("ab")).fileno() if log else 2
        process = fork_server().start(
            *("sandbox", "--json", *arguments),
            env=plain_environment(),
            streams=(empty, writing, complaints),
        )
        os.close(writing)
    with os.fdopen(reading, "rb") as said:
        return process, json.loads(said.readline())
