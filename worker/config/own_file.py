"""Reading a file that says what the worker is to do: only where nobody else could have written it.

``worker.toml`` is looked for in the working folder, which may be one that everybody writes to.
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
        found = os.fstat(descriptor)
        if found.st_uid not in (os.geteuid(), _ROOT):
            raise UserError(
                f"{path} belongs to another user, who could have the worker do anything",
                remedy="put one of your own in its place, or run: chown",
            )
        if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid)):
            raise UserError(f"{path} can be changed by other users", remedy=f"run: chmod go-w {path}")
        os.set_blocking(descriptor, True)
        return file.read()


def _is_private(group: int) -> bool:
    """Whether it is this user's own group: many systems give each user one, and let it write by default."""
    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and not set(found.gr_mem) - {user.pw_name}
