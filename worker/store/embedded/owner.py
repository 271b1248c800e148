"""The user that PostgreSQL runs as: it refuses to be root."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever owns the server's files and processes."""

    name: str
    uid: int
    gid: int
    is_other: bool

    def run(
        self,
        command: list[str],
        *,
        cwd: Path,
        env: dict[str, str] | None = None,
        timeout: float = 60,
        pass_fds: tuple[int, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user. Its working folder must be one that the user may enter."""
        identity = {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_other else {}
        try:
            return subprocess.run(  # type: ignore[call-overload, no-any-return] # noqa: S603, PLW1510 - callers look at the code
                command,
                cwd=cwd,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=timeout,
                umask=0o077,
                pass_fds=pass_fds,
                # What the terminal sends is for us, who know what must not be cut short.
                start_new_session=True,
                **identity,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(
                f"{command[0]} could not be run as {self.name}: {error}", remedy="set WORKER_DATABASE_URL"
            ) from error

    def may_enter(self, path: Path) -> bool:
        """Whether every folder down to ``path`` lets this user through."""
        if not self.is_other:
            return True
        folders = [path, *path.parents]
        return all(self._may_pass(folder.stat()) for folder in folders if folder.exists())

    def _may_pass(self, status: os.stat_result) -> bool:
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)

    def give(self, path: Path) -> None:
        """Make this user the owner of ``path``, a link itself if it is one."""
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def server_owner() -> Owner:
    """Ourselves, or for root the first unprivileged user that exists."""
    if os.geteuid() != 0:
        user = pwd.getpwuid(os.geteuid()) if _known(os.geteuid()) else None
        return Owner(user.pw_name if user else str(os.geteuid()), os.geteuid(), os.getegid(), is_other=False)
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Owner(name, found.pw_uid, found.pw_gid, is_other=True)
    raise UserError(
        "PostgreSQL does not run as root, and there is no user postgres or nobody",
        remedy="run as an ordinary user, or set WORKER_DATABASE_URL",
    )


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
