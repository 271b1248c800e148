"""One embedded server: made once, started when somebody needs it, stopped when nobody does."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import socket
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import psutil

from worker.errors import UserError
from worker.store.embedded.binaries import Binaries, find_binaries, reachable_for
from worker.store.embedded.owner import Owner, server_owner

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

_ROLE = "fleet"
_DATABASE = "fleet"
_START_SECONDS = 30
# Where root's cluster goes when PostgreSQL's user may not enter the configured folder.
_SITE_FOLDER = Path("/var/lib/archive-fleet")
_SERVER_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 100
tcp_keepalives_idle = 10
tcp_keepalives_interval = 5
tcp_keepalives_count = 3
"""


@contextlib.contextmanager
def open_cluster(data_dir: Path) -> Iterator[str]:
    """The address of the embedded server below ``data_dir``, running for the length of this block."""
    cluster = Cluster.below(data_dir)
    address = cluster.acquire()
    try:
        yield address
    finally:
        cluster.release()


class Cluster:
    """The files and the life of one server.

    ``start.lock`` is held while anybody starts or stops it. ``users.lock`` is held, shared, by every process
    that uses it: the kernel lets go of it when a process dies, so the last one to leave knows that it is
    the last.
    """

    def __init__(self, home: Path, binaries: Binaries, owner: Owner) -> None:
        self.home = home
        self.data = home / "data"
        self._owner = owner
        self._binaries = binaries
        self._users: IO[bytes] | None = None

    @classmethod
    def below(cls, data_dir: Path) -> Cluster:
        """The cluster that belongs to ``data_dir``; its path names the major version."""
        owner, binaries = server_owner(), find_binaries()
        data_dir = data_dir.absolute()
        # 0711 for root: PostgreSQL's user has to pass through it, and nobody needs to list it.
        data_dir.mkdir(mode=0o711 if owner.is_other else 0o700, parents=True, exist_ok=True)
        if not owner.may_enter(data_dir):
            data_dir = _SITE_FOLDER / "for" / hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
        home = data_dir / f"postgres-{binaries.major}"
        home.mkdir(mode=0o711 if owner.is_other else 0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        owner.give(home)
        return cls(home, reachable_for(owner, binaries, home), owner)

    def acquire(self) -> str:
        """Make and start the server if need be, and keep it up until :meth:`release`."""
        with self._transition():
            if not (self.data / "PG_VERSION").exists():
                self._initialise()
            port = self._running_port() or self._start()
            self._ensure_database(port)
            self._users = (self.home / "users.lock").open("ab")
            fcntl.flock(self._users, fcntl.LOCK_SH)
        return f"postgresql://{_ROLE}:{self._password()}@127.0.0.1:{port}/{_DATABASE}"

    def release(self) -> None:
        """Leave; stop the server if nobody else uses it."""
        if self._users is None:
            return
        with self._transition(), self._users as users:
            self._users = None
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._pg_ctl("stop", "-m", "fast")

    @contextlib.contextmanager
    def _transition(self) -> Iterator[None]:
        with (self.home / "start.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _initialise(self) -> None:
        password = self.home / "password"
        if not password.exists():
            unfinished = self.home / "password.unfinished"
            unfinished.touch(mode=0o600)
            unfinished.write_text(secrets.token_urlsafe(24))
            self._owner.give(unfinished)
            unfinished.rename(password)
        # initdb refuses a folder with anything in it, and leaves one behind when it is killed.
        unfinished_data = self.home / f"data.unfinished-{secrets.token_hex(4)}"
        done = self._owner.run(
            [
                *(self._binaries.program("initdb"), "-D", str(unfinished_data), "-U", _ROLE),
                *("-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8"),
                # Letters beyond ASCII have to fold their case for the search over names.
                *(
                    ("--locale-provider=builtin", "--locale=C.UTF-8")
                    if self._binaries.major >= 17
                    else ("--locale=C.UTF-8",)
                ),
            ],
            cwd=self.home,
        )
        if done.returncode != 0:
            raise _failure("initdb failed", done.stdout)
        with (unfinished_data / "postgresql.conf").open("a") as conf:
            conf.write(_SERVER_SETTINGS)
        unfinished_data.rename(self.data)

    def _running_port(self) -> int | None:
        """The port of our own running server; a stale pid file is cleared, its pid's new owner left alone."""
        pid_file = self.data / "postmaster.pid"
        try:
            lines = pid_file.read_text().splitlines()
            pid, port = int(lines[0]), int(lines[3])
        except (OSError, ValueError, IndexError):
            return None
        if not self._is_our_server(pid):
            # PostgreSQL would refuse to start while that pid lives, whoever it belongs to.
            pid_file.unlink(missing_ok=True)
            return None
        self._wait_until_ready(port)
        return port

    def _is_our_server(self, pid: int) -> bool:
        try:
            command = psutil.Process(pid).cmdline()
        except psutil.Error:
            return False
        return bool(command) and "postgres" in Path(command[0]).name and str(self.data) in command

    def _start(self) -> int:
        for _ in range(5):
            port = _free_port()
            done = self._pg_ctl(
                "start",
                "-w",
                "-t",
                str(_START_SECONDS),
                "-l",
                str(self.home / "server.log"),
                "-o",
                f"-p {port}",
            )
            if done.returncode == 0:
                return port
            log = (self.home / "server.log").read_text(errors="replace")[-2000:]
            if "Address already in use" not in log:
                raise _failure("the embedded PostgreSQL did not start", log)
        raise _failure("the embedded PostgreSQL found no free port", "")

    def _pg_ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self._binaries.program("pg_ctl"), "-D", str(self.data), *arguments]
        return self._owner.run(command, cwd=self.home, timeout=_START_SECONDS + 10)

    def _wait_until_ready(self, port: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            command = [self._binaries.program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
            if self._owner.run(command, cwd=self.home).returncode == 0:
                return
            time.sleep(0.05)
        raise _failure("the embedded PostgreSQL does not answer", "")

    def _ensure_database(self, port: int) -> None:
        marker = self.home / "database.made"
        if marker.exists():
            return
        done = self._owner.run(
            [self._binaries.program("createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", _ROLE, _DATABASE],
            cwd=self.home,
            env={"PGPASSWORD": self._password()},
        )
        if done.returncode != 0 and "already exists" not in done.stdout:
            raise _failure("the embedded database could not be made", done.stdout)
        marker.touch()

    def _password(self) -> str:
        return (self.home / "password").read_text().strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _failure(what: str, output: str) -> UserError:
    last = output.strip().splitlines()[-1:] or [""]
    return UserError(
        f"{what}: {last[0]}" if last[0] else what, remedy="see server.log, or set WORKER_DATABASE_URL"
    )
