"""The demo's Telegram: a process of its own, started by the first who needs it, stopped by the last."""

from __future__ import annotations

import contextlib
import fcntl
import json
import select
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from worker.errors import UserError
from worker.sandbox.admin_client import TOKEN_FILE, SandboxAdmin
from worker.sandbox.listening import Ports
from worker.signals import undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE = "12345"
_HOST = "127.0.0.1"
# A busy machine takes long to start a process that imports a whole client library.
_SECONDS = 60.0
_LOG_BYTES = 2**20
# A second one, in case somebody was killed while starting it: his server may win the race with ours.
_TRIES = 2


@dataclass(frozen=True, slots=True)
class Telegram:
    """Where the loopback Telegram listens."""

    host: str
    port: int
    public_key: Path
    admin: SandboxAdmin


def whereabouts(folder: Path) -> Telegram:
    """Where it listened the last time, and will again."""
    state = _state(folder)
    ports = Ports(state)
    admin = SandboxAdmin(_HOST, ports.before("admin"), state / TOKEN_FILE)
    return Telegram(_HOST, ports.before("client"), state / "server-key.pub.pem", admin)


@contextlib.contextmanager
def open_telegram(folder: Path) -> Iterator[Telegram]:
    """The server below ``folder``, running for the length of the block on the state it had before.

    ``telegram.users`` is held, shared, by every process that uses it. The server itself waits for it
    exclusively, and ends when it gets it: so it outlives nobody, not even somebody who was killed.
    """
    with (folder / "telegram.users").open("ab") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with undisturbed():
            process = _start_unless_served(folder)
        try:
            yield whereabouts(folder)
        finally:
            with undisturbed():
                _leave(users, process)


def forget_telegram(folder: Path) -> None:
    """Remove what it knows, once the server of somebody who was killed has ended."""
    deadline = time.monotonic() + _SECONDS
    while _is_served(folder):
        if time.monotonic() > deadline:
            raise UserError(f"another loopback Telegram runs on {_state(folder)}", remedy="stop it")
        time.sleep(0.05)
    shutil.rmtree(_state(folder), ignore_errors=True)


def _state(folder: Path) -> Path:
    return folder / "telegram"


def _start_unless_served(folder: Path) -> subprocess.Popen[bytes] | None:
    with (folder / "telegram.start").open("ab") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        for _ in range(_TRIES):
            if _is_served(folder):
                _wait_for_answer(folder)
                return None
            if process := _start(folder):
                return process
    raise UserError(
        "the loopback Telegram did not start", remedy=f"see {folder / 'telegram.log'}, or run: worker sandbox"
    )


def _is_served(folder: Path) -> bool:
    lock = _state(folder) / "lock"
    if not lock.exists():
        return False
    with lock.open("rb") as held:
        return not _try_lock(held, fcntl.LOCK_SH)


def _wait_for_answer(folder: Path) -> None:
    """Whoever started it may have been killed before it listened."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        port = Ports(_state(folder)).before("admin")
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
            return
        time.sleep(0.05)
    raise UserError("the loopback Telegram does not answer", remedy="end it, and try again")


def _start(folder: Path) -> subprocess.Popen[bytes] | None:
    users = str(folder / "telegram.users")
    arguments = ["--json", "--code", CODE, "--state", str(_state(folder)), "--users", users]
    path = folder / "telegram.log"
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    with path.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "worker.sandbox", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # Ctrl-C is for whoever uses it: what is under way is finished first.
            start_new_session=True,
        )
    if _announced(process) is None:
        process.kill()
        process.wait()
        return None
    return process


def _announced(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    assert process.stdout is not None
    with process.stdout as output:
        line = output.readline() if select.select([output], [], [], _SECONDS)[0] else b""
    return json.loads(line) if line else None


def _leave(users: IO[bytes], process: subprocess.Popen[bytes] | None) -> None:
    """Stop it if nobody else uses it; nobody can come while the lock is held."""
    if _try_lock(users, fcntl.LOCK_EX):
        if process is not None:
            _end(process)
    elif process is not None and not _try_lock(users, fcntl.LOCK_SH):
        # The server itself got the lock, in the moment between our shared and our exclusive one.
        _end(process)


def _try_lock(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
