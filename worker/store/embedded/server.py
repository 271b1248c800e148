"""Driving PostgreSQL's own programs: making a cluster, starting, finding, asking and stopping its server."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from worker.errors import UserError
from worker.store.embedded.socket_folder import SocketFolder

if TYPE_CHECKING:
    import subprocess

    from worker.store.embedded.binaries import Binaries
    from worker.store.embedded.home import Home

ROLE = "fleet"
DATABASE = "fleet"
# A socket has no port; PostgreSQL makes this one part of its name.
PORT = 5432
_START_SECONDS = 30
_LOG_BYTES = 2**20
# Given on the command line, so that no edit of a file in the cluster opens it to others. No port: another
# user, who takes it after the server's death, would be told the password by every client. The folder is the
# data one, where the server works: the path that leads to it may be longer than the kernel takes for a
# socket.
_SERVER_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "max_connections": "300",
}
# No process can have it, and PostgreSQL takes it for a number.
_NOBODYS_PID = 2**31 - 1
# The line of its pid file that names the address of its port; empty where it has none.
_LISTENS_ON = 5


class ListensElsewhereError(Exception):
    """The server runs, but as an earlier version started it: on a port."""


class Server:
    """The server of one home."""

    def __init__(self, home: Home, binaries: Binaries) -> None:
        self._home = home
        self._binaries = binaries

    @property
    def _pid_file(self) -> Path:
        return self._home.data / "postmaster.pid"

    def is_gone(self) -> bool:
        """Whether no process of ours serves this home; costs nothing to ask."""
        try:
            return not self._is_ours(int(self._pid_file.read_text().split()[0]))
        except (OSError, ValueError, IndexError):
            return True

    def initialise(self) -> None:
        """Make the cluster, in one step as seen from outside: a killed initdb leaves nothing in its place."""
        for left_behind in self._home.path.glob("data.unfinished-*"):
            shutil.rmtree(left_behind)
        unfinished = self._home.make_owned(f"data.unfinished-{secrets.token_hex(4)}")
        self._home.password()
        provider = ("--locale-provider=builtin",) if self._binaries.major >= 17 else ()
        done = self._run(
            *("initdb", "-D", str(unfinished), "-U", ROLE, "-E", "UTF8"),
            *("-A", "scram-sha-256", f"--pwfile={self._home.password_file}"),
            # Letters beyond ASCII have to fold their case for the search over names.
            *(*provider, "--locale=C.UTF-8"),
        )
        if done.returncode != 0:
            raise self._failure("initdb failed", done.stdout)
        unfinished.rename(self._home.data)

    def is_running(self) -> bool:
        """Whether our own server runs, once it answers."""
        try:
            lines = self._pid_file.read_text().splitlines()
            pid = int(lines[0])
        except (OSError, ValueError, IndexError):
            return False
        if self._is_ours(pid):
            if lines[_LISTENS_ON : _LISTENS_ON + 1] not in ([], [""]):
                raise ListensElsewhereError
            return self._answers(pid)
        if psutil.pid_exists(pid):
            # PostgreSQL would take that stranger for its server and refuse to start. Its other guard, against
            # orphaned backends, reads the same file: so the file stays, with a pid that is nobody's.
            replacement = self._home.path / "postmaster.pid"
            replacement.write_text("\n".join([str(_NOBODYS_PID), *lines[1:], ""]))
            self._home.owner.give(replacement)
            replacement.replace(self._pid_file)
        return False

    def start(self) -> None:
        """Start it; nobody else may be starting or stopping it."""
        self._rotate_log()
        for left_behind in self._home.data.glob(f".s.PGSQL.{PORT}*"):
            # Beside the socket lies its lock with a pid of its own, which may be another process's by now.
            left_behind.unlink()
        settings = " ".join(f"-c {name}={value}" for name, value in _SERVER_SETTINGS.items())
        log = str(self._home.log_file)
        done = self._pg_ctl("start", "-t", str(_START_SECONDS), "-l", log, "-o", f"-p {PORT} {settings}")
        if done.returncode != 0:
            said = self._home.log_file.read_text(errors="replace")[-2000:] if Path(log).exists() else ""
            raise self._failure("the embedded PostgreSQL did not start", said or done.stdout)

    def stop(self) -> None:
        """Stop it, breaking off whatever is still connected."""
        self._pg_ctl("stop", "-m", "fast", "-t", str(_START_SECONDS))

    def make_database(self) -> None:
        """Make the database that the address names, if it is not there yet."""
        done = self._ask("createdb", "-U", ROLE, DATABASE, env={"PGPASSWORD": self._home.password()})
        if done.returncode != 0 and "already exists" not in done.stdout:
            raise self._failure("the embedded database could not be made", done.stdout)

    def _is_ours(self, pid: int) -> bool:
        try:
            process = psutil.Process(pid)
            command, uid = process.cmdline(), process.uids().effective
        except psutil.Error:
            return False
        # Anybody can give a process of theirs any words for a command line.
        if uid != self._home.owner.uid:
            return False
        return bool(command) and "postgres" in Path(command[0]).name and str(self._home.data) in command

    def _answers(self, pid: int) -> bool:
        """Wait until it takes connections; False if it ends instead, as when it was being stopped."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._ask("pg_isready", "-q").returncode == 0:
                return True
            if not self._is_ours(pid):
                return False
            time.sleep(0.05)
        raise self._failure(f"the embedded PostgreSQL (pid {pid}) does not answer", "")

    def _failure(self, what: str, output: str) -> UserError:
        """Its own words about what went wrong: the cause if it names one, else the last it said."""
        lines = output.strip().splitlines()
        causes = [line for line in lines if "PANIC:" in line or "FATAL:" in line] or lines
        log = self._home.log_file
        remedy = f"see {log}, or set WORKER_DATABASE_URL" if log.exists() else "set WORKER_DATABASE_URL"
        return UserError(f"{what}: {causes[-1]}" if causes else what, remedy=remedy)

    def _rotate_log(self) -> None:
        log = self._home.log_file
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            os.replace(log, log.with_suffix(".log.1"))  # noqa: PTH105 - overwrites the one before

    def _pg_ctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run("pg_ctl", "-D", str(self._home.data), "-w", *arguments)

    def _ask(
        self, program: str, *arguments: str, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        with SocketFolder(self._home.data) as folder:
            reached = ("-h", folder.name, "-p", str(PORT))
            return self._run(program, *reached, *arguments, env=env, pass_fds=folder.descriptors)

    def _run(
        self,
        program: str,
        *arguments: str,
        env: dict[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        command = [self._binaries.program(program), *arguments]
        return self._home.owner.run(command, cwd=self._home.path, env=env, pass_fds=pass_fds)
