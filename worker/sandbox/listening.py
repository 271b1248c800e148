"""Where the server listens, and that nobody else serves the same state."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import stat
from typing import TYPE_CHECKING

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

# Below the range from which the kernel takes the ports of outgoing connections: a client that tries again and
# again while the server is down could be given this very port, connect to itself, and keep the server out.
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_767
TRIES = 50
_LOCK = "lock"


def close_to_others(state: Path) -> None:
    """Make the state directory, or close the one that is there: in it lie the token and what was uploaded."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = state.stat()
        if found.st_uid != os.geteuid():
            raise UserError(f"{state} belongs to another user", remedy="choose another --state")
        if not stat.S_IMODE(found.st_mode) & 0o077:
            return
        # Of a folder with other things in it, somebody else may need what the mode allows.
        if not (state / _LOCK).exists() and any(state.iterdir()):
            raise UserError(
                f"{state} is open to other users, and holds more than a loopback Telegram's state",
                remedy="choose another --state",
            )
        state.chmod(0o700)
    except OSError as error:
        raise UserError(
            f"{state} cannot hold the state: {error.strerror}", remedy="choose another --state"
        ) from error


@contextlib.contextmanager
def sole_server_of(state: Path) -> Iterator[None]:
    """Hold the state directory; the lock ends with the process, however it ends."""
    with (state / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise UserError(
                f"Another sandbox runs on {state}", remedy="stop it, or choose another --state"
            ) from taken
        yield


class Ports:
    """The ports of a state directory: a server started again on it listens where it did before."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def before(self, name: str) -> int:
        """Return the port of the last time, 0 if there was none."""
        path = self._state / f"{name}.port"
        return int(path.read_text()) if path.exists() else 0

    def keep(self, name: str, port: int) -> None:
        (self._state / f"{name}.port").write_text(str(port))


async def listen(serve: Serve, host: str, port: int, limit: int) -> asyncio.Server:
    """Listen on this port, or on a free one if it is 0."""
    try:
        if port:
            return await asyncio.start_server(serve, host, port, limit=limit)
        return await _anywhere(serve, host, limit)
    except OSError as error:
        raise UserError(
            f"The sandbox cannot listen on {host}: {error}",
            remedy="choose another --port, or stop what listens there",
        ) from error


async def _anywhere(serve: Serve, host: str, limit: int) -> asyncio.Server:
    for _ in range(TRIES):
        port = LOWEST_PORT + secrets.randbelow(HIGHEST_PORT - LOWEST_PORT)
        with contextlib.suppress(OSError):
            return await asyncio.start_server(serve, host, port, limit=limit)
    return await asyncio.start_server(serve, host, 0, limit=limit)


def port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])
