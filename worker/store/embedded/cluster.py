"""One embedded server: made once, started when somebody needs it, stopped when nobody does."""

from __future__ import annotations

import contextlib
import fcntl
import threading
from typing import IO, TYPE_CHECKING

from sqlalchemy.engine import URL

from worker.errors import FleetError, UserError
from worker.log import get_logger
from worker.signals import undisturbed
from worker.store.embedded.binaries import Binaries, find_binaries, reachable_for
from worker.store.embedded.home import SITE_FOLDER, Home, make_home
from worker.store.embedded.owner import server_owner
from worker.store.embedded.server import DATABASE, PORT, ROLE, ListensElsewhereError, Server
from worker.store.embedded.socket_folder import SocketFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


log = get_logger(__name__)
_LOOK_SECONDS = 1.0


@contextlib.contextmanager
def open_cluster(data_dir: Path, *, site_folder: Path = SITE_FOLDER) -> Iterator[str]:
    """The address of the embedded server below ``data_dir``, running for the length of this block."""
    cluster = Cluster.below(data_dir, site_folder=site_folder)
    try:
        yield cluster.acquire()
    finally:
        cluster.release()


class Cluster:
    """The life of one server.

    ``start.lock`` is held while anybody starts or stops it. ``users.lock`` is held, shared, by every process
    that uses it: the kernel lets go of it when a process dies, so the last one to leave knows that it is
    the last.
    """

    def __init__(self, home: Home, binaries: Binaries) -> None:
        self.home = home
        self._binaries = binaries
        self._users: IO[bytes] | None = None
        self._socket: SocketFolder | None = None
        self._leaving = threading.Event()

    @classmethod
    def below(cls, data_dir: Path, *, site_folder: Path = SITE_FOLDER) -> Cluster:
        """The cluster that belongs to ``data_dir``."""
        owner, binaries = server_owner(), find_binaries()
        return cls(make_home(data_dir, binaries.major, owner, site_folder), binaries)

    def acquire(self) -> str:
        """Make and start the server if need be, and keep it up until :meth:`release`."""
        with self._transition() as server:
            if not (self.home.data / "PG_VERSION").exists():
                server.initialise()
            self._users = self.home.open_lock("users.lock")
            running = self._find(server, self._users)
            fcntl.flock(self._users, fcntl.LOCK_SH)
            # Cut short, it would leave a server that comes up after everybody has gone.
            with undisturbed():
                if not running:
                    server.start()
            if not self.home.database_marker.exists():
                server.make_database()
                self.home.database_marker.touch()
        self._socket = SocketFolder(self.home.data)
        where = {"host": self._socket.name, "port": str(PORT)}
        address = URL.create(
            "postgresql", username=ROLE, password=self.home.password(), database=DATABASE, query=where
        )
        self._leaving.clear()
        threading.Thread(target=self._revive, name="embedded server", daemon=True).start()
        return address.render_as_string(hide_password=False)

    def _revive(self) -> None:
        """Start the server again if it is killed, until this one leaves: its users find it where it was."""
        while not self._leaving.wait(_LOOK_SECONDS):
            if not Server(self.home, self._binaries).is_gone():
                continue
            try:
                with self._transition() as server:
                    # Somebody else may have been faster, or its last user has left.
                    if not self._leaving.is_set() and not server.is_running():
                        server.start()
                        log.warning("database.started_again", folder=str(self.home.path))
            except (FleetError, OSError) as error:
                # Its orphaned backends may not have ended yet.
                log.warning("database.not_started_again", reason=str(error))

    def _find(self, server: Server, users: IO[bytes]) -> bool:
        """Whether it runs. One that an earlier version started, on a port, goes on only for its commands."""
        try:
            return server.is_running()
        except ListensElsewhereError:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"commands of an earlier version use the database in {self.home.path}",
                    remedy="end them, and run this again",
                ) from None
            server.stop()
            return False

    def release(self) -> None:
        """Leave, also after an :meth:`acquire` that failed; stop the server if nobody else uses it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._users is None:
            return
        self._leaving.set()
        with undisturbed(), self._transition() as server, self._users as users:
            self._users = None
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            server.stop()

    @contextlib.contextmanager
    def _transition(self) -> Iterator[Server]:
        with self.home.open_lock("start.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Server(self.home, reachable_for(self.home.owner, self._binaries, self.home.path))
