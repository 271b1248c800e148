"""What says what the worker is to do, or where: only where nobody else could have laid or written it.

``worker.toml`` and the demo's folder are looked for in the working folder, which may be one that everybody
writes to.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import TYPE_CHECKING

from worker.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

_ROOT = 0


def read_own_file(path: Path) -> str:
    """Its text; an error if it is another user's, or if others may change it."""
    # Somebody else's pipe would have us wait for them here.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        _refuse_others(path, os.fstat(descriptor))
        os.set_blocking(descriptor, True)
        return file.read()


def require_own_folder(path: Path) -> None:
    """An error if this folder, or a link to it, is another user's, or if others may change it."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        _refuse_other_owner(path, found)
        found = path.stat()
    _refuse_others(path, found)


def _refuse_others(path: Path, found: os.stat_result) -> None:
    _refuse_other_owner(path, found)
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid)):
        raise UserError(f"{path} can be changed by other users", remedy=f"run: chmod go-w {path}")


def _refuse_other_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise UserError(
            f"{path} belongs to another user, who could have the worker do anything",
            remedy="put one of your own in its place, or run: chown",
        )


def _is_private(group: int) -> bool:
    """Whether it is this user's own group: many systems give each user one, and let it write by default."""
    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and not set(found.gr_mem) - {user.pw_name}
