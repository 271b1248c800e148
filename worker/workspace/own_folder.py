"""A working folder of ours inside a folder that others may write to.

Its name can be guessed, so somebody may have put one there before us, or a link; and whatever is reached by
its path may be another's a moment later. So it is opened once, without following a link, has to be ours and
closed to others, and all that is in it is reached from there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Self

from worker import faults
from worker.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OwnFolder:
    """The folder ``name`` in ``parent``, made if it is not there."""

    def __init__(self, parent: Path, name: str) -> None:
        self._path = parent / name
        self._name = name
        with faults.around("restored.parent"):
            self._parent = os.open(parent, _FOLDER)
        try:
            self._folder = self._open()
        except BaseException:
            os.close(self._parent)
            raise

    @classmethod
    def make(cls, parent: Path, name: str) -> Self:
        with faults.around("restored.folder"), contextlib.suppress(FileExistsError):
            parent.mkdir(parents=True, exist_ok=True)
            (parent / name).mkdir(mode=0o700)
        return cls(parent, name)

    def _open(self) -> int:
        try:
            with faults.around("restored.own"):
                folder = os.open(self._name, _FOLDER | os.O_NOFOLLOW, dir_fd=self._parent)
        except NotADirectoryError:
            raise self._refused("is no folder, or a link to one") from None
        except OSError as error:
            # What O_NOFOLLOW says of a link, where O_DIRECTORY has not said so before.
            if self._path.is_symlink():
                raise self._refused("is no folder, or a link to one") from error
            raise
        if why := _unfit(folder):
            os.close(folder)
            raise self._refused(why)
        return folder

    def _refused(self, why: str) -> UserError:
        return UserError(
            f"{self._path} {why}", remedy="remove it, or give another folder, which is yours alone"
        )

    def open(self, name: str, flags: int) -> int:
        """Open a file in it, never by way of a link. Others may read it once it has a name outside."""
        try:
            with faults.around("restored.file"):
                return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._refused("holds a link") from error
            raise

    def found(self, name: str) -> os.stat_result | None:
        """What is known of a file in it; None if there is none."""
        try:
            return os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def beside(self, name: str) -> os.stat_result | None:
        """The same of what stands beside it, a link itself if it is one."""
        try:
            return os.stat(name, dir_fd=self._parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def place(self, name: str, target: str) -> None:
        """Give a file in it a name beside it, in the place of nothing."""
        folders = {"src_dir_fd": self._folder, "dst_dir_fd": self._parent}
        try:
            with faults.around("restored.place"):
                os.link(name, target, **folders, follow_symlinks=False)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):
            # No such thing on this file system; a look before is the best there is then.
            if self.beside(target) is not None:
                raise FileExistsError(target) from None
            with faults.around("restored.move"):
                os.rename(name, target, **folders)  # noqa: PTH104 - from one open folder to another

    def remove(self) -> None:
        """Remove it and what is in it."""
        with faults.around("restored.discard"), contextlib.suppress(OSError):
            for name in os.listdir(self._folder):  # noqa: PTH208 - of an open folder
                os.unlink(name, dir_fd=self._folder)
            os.rmdir(self._name, dir_fd=self._parent)

    def close(self) -> None:
        os.close(self._folder)
        os.close(self._parent)


def _unfit(folder: int) -> str:
    """What is wrong with an open folder as a place for nobody but us, or nothing."""
    found = os.fstat(folder)
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    if stat.S_IMODE(found.st_mode) & 0o022 and os.listdir(folder):
        return "could be written to by other users"
    with contextlib.suppress(PermissionError):
        os.fchmod(folder, 0o700)
    if stat.S_IMODE(os.fstat(folder).st_mode) & 0o022:
        return "lies on a file system that keeps other users out of nothing"
    return ""
