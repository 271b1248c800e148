"""The folder of one embedded server: who may enter it, its locks and its password.

When root runs us, the server belongs to another user, and root never writes where that user could have laid
a link: the home folder stays root's, and only ``data`` and ``log`` are given away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from worker.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.store.embedded.owner import Owner

# Where root's cluster goes when PostgreSQL's user may not enter the configured folder.
SITE_FOLDER = Path("/var/lib/archive-fleet")


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of one cluster lies."""

    path: Path
    owner: Owner

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def log_file(self) -> Path:
        return self.path / "log" / "server.log"

    @property
    def database_marker(self) -> Path:
        return self.path / "database.made"

    @property
    def password_file(self) -> Path:
        return self.path / "password"

    def password(self) -> str:
        """Made once; only the server's user and root can read it."""
        if not self.password_file.exists():
            unfinished = self.path / f"password.{secrets.token_hex(4)}"
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(24))
            self.owner.give(unfinished)
            unfinished.rename(self.password_file)
        return self.password_file.read_text().strip()

    def make_owned(self, name: str) -> Path:
        """A folder in here that belongs to the server's user alone."""
        folder = self.path / name
        folder.mkdir(mode=0o700, exist_ok=True)
        self.owner.give(folder)
        return folder

    def open_lock(self, name: str) -> IO[bytes]:
        """A file to lock; nobody else can open it, so nobody else can hold us up."""
        return os.fdopen(os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600), "rb+")


def make_home(data_dir: Path, major: int, owner: Owner, site_folder: Path = SITE_FOLDER) -> Home:
    """The home of the cluster that belongs to ``data_dir``; its path names the major version."""
    data_dir = data_dir.absolute()
    try:
        parent = _enterable(data_dir, owner, site_folder)
        _refuse_another_major(parent, major)
        path = parent / f"postgres-{major}"
        # The server's user passes through by its group; whatever lies below is closed one by one.
        mode = 0o710 if owner.is_other else 0o700
        path.mkdir(mode=mode, exist_ok=True)
        if owner.is_other:
            os.chown(path, 0, owner.gid)
        path.chmod(mode)
        home = Home(path, owner)
        home.make_owned("log")
    except OSError as error:
        raise UserError(
            f"the embedded database cannot live in {data_dir}: {error.strerror}",
            remedy="set WORKER_DATA_DIR to a folder that you may write to, or WORKER_DATABASE_URL",
        ) from error
    return home


def _enterable(data_dir: Path, owner: Owner, site_folder: Path) -> Path:
    # 0711 for root: PostgreSQL's user has to pass through, and nobody needs to list it.
    mode = 0o711 if owner.is_other else 0o700
    _make_folders(data_dir, mode)
    if owner.may_enter(data_dir):
        return data_dir
    # Somebody closed that folder on purpose; opening it is not for us.
    instead = site_folder / "for" / hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    _make_folders(instead, mode)
    return instead


def _make_folders(folder: Path, mode: int) -> None:
    with _umask(0):
        for each in reversed((folder, *folder.parents)):
            if not each.exists():
                each.mkdir(mode, exist_ok=True)


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    """In force from the first moment a folder exists: a chmod would come too late for a second process."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _refuse_another_major(parent: Path, major: int) -> None:
    if (parent / f"postgres-{major}" / "data" / "PG_VERSION").exists():
        return
    for other in sorted(parent.glob("postgres-*/data/PG_VERSION")):
        holder = other.parent.parent
        raise UserError(
            f"{holder} holds the database, but the programs found are PostgreSQL {major}",
            remedy=f"install those of {holder.name}, or move that folder away to start empty",
        )
