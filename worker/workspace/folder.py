"""One folder per set and owner, gone when the work on the set ends."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker import faults
from worker.errors import NotBeforeError

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"set-(\d+)-(\d+)")
_FULL_DISK_RETRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Leftover:
    """A folder found on the disk, and whose it was."""

    set_id: int
    fence: int
    path: Path


class Workspace:
    """The downloads of this host. Paths are made of our own numbers only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, set_id: int, fence: int) -> Path:
        """Where this owner of the set keeps its files; a later owner never meets them."""
        return self._root / f"set-{set_id}-{fence}"

    async def open(self, set_id: int, fence: int) -> Path:
        """Make the folder."""
        path = self.folder(set_id, fence)
        with faults.around("workspace.open"):
            await asyncio.to_thread(path.mkdir, mode=0o700, parents=True, exist_ok=True)
        return path

    async def remove(self, set_id: int, fence: int) -> None:
        """Remove the folder and what is in it."""
        with faults.around("workspace.remove"):
            await asyncio.to_thread(shutil.rmtree, self.folder(set_id, fence), ignore_errors=True)

    def leftovers(self) -> list[Leftover]:
        """Every set's folder that is on the disk now."""
        if not self._root.exists():
            return []
        found = ((_NAME.fullmatch(path.name), path) for path in sorted(self._root.iterdir()))
        return [Leftover(int(match[1]), int(match[2]), path) for match, path in found if match]


class PartFile:
    """A file that is written once, front to back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with faults.around("workspace.part"):
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def append(self, data: bytes) -> None:
        """Write all of ``data``. A full disk is a reason to wait, not to fail."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise NotBeforeError(
                f"the disk took no more: {error.strerror}",
                seconds=_FULL_DISK_RETRY_SECONDS,
                remedy="free some space",
            ) from error

    def close(self) -> None:
        os.close(self._fd)
