"""One embedded server: made once, started when somebody needs it, stopped when nobody does."""

from __future__ import annotations

import contextlib
import fcntl
import threading
from typing import IO, TYPE_CHECKING

from worker.errors import FleetError
from worker.log import get_logger
from worker.signals import undisturbed
from worker.store.embedded.binaries import Binaries, find_binaries, reachable_for
from worker.store.embedded.home import SITE_FOLDER, Home, make_home
from worker.store.embedded.owner import server_owner
from worker.store.embedded.server import DATABASE, ROLE, Server

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
            fcntl.flock(self._users, fcntl.LOCK_SH)
            # Cut short, it would leave a server that comes up after everybody has gone.
            with undisturbed():
                port = server.running_port() or server.start()
            if not self.home.database_marker.exists():
                server.make_database(port)
                self.home.database_marker.touch()
        self._leaving.clear()
        threading.Thread(target=self._revive, args=(port,), name="embedded server", daemon=True).start()
        return f"postgresql://{ROLE}:{self.home.password()}@127.0.0.1:{port}/{DATABASE}"

    def release(self) -> None:
        """Leave, also after an :meth:`acquire` that failed; stop the server if nobody else uses it."""
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

    def _revive(self, port: int) -> None:
        """Start the server again if it is killed, at the place that its users know; until this one leaves."""
        while not self._leaving.wait(_LOOK_SECONDS):
            if not Server(self.home, self._binaries).is_gone():
                continue
            try:
                with self._transition() as server:
                    # Somebody else may have been faster, or its last user has left.
                    if not self._leaving.is_set() and server.running_port() is None:
                        server.start(only_on=port)
                        log.warning("database.started_again", folder=str(self.home.path))
            except (FleetError, OSError) as error:
                # Its orphaned backends may not have ended yet.
                log.warning("database.not_started_again", reason=str(error))

    @contextlib.contextmanager
    def _transition(self) -> Iterator[Server]:
        with self.home.open_lock("start.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Server(self.home, reachable_for(self.home.owner, self._binaries, self.home.path))
