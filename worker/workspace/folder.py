"""One folder per process, in it one per set; each is gone when its work ends.

The folder of a set that has to wait may be kept for its next attempt in this process: a few at most, and
they are the first to go when disk space is needed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import uuid
from typing import TYPE_CHECKING

from worker import faults
from worker.errors import DiskFullError
from worker.workspace.volume import Volume

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from worker.domain.disk_space import Space

_FULL_DISK_RETRY_SECONDS = 60.0
_MOST_KEPT = 8


class Workspace:
    """The downloads of one process. Paths are made of our own numbers only."""

    def __init__(self, root: Path, worker_id: uuid.UUID) -> None:
        self._root = root
        self._own = root / str(worker_id)
        self._volume = Volume(root)
        self._kept: dict[int, Path] = {}

    @property
    def name(self) -> str:
        """The volume that the folders are on."""
        return self._volume.name()

    async def space(self) -> Space:
        """How much of it is free."""
        return await asyncio.to_thread(self._volume.space)

    def folder(self, set_id: int, fence: int) -> Path:
        """Where this owner of the set keeps its files; a later owner meets them only if they were kept."""
        return self._own / f"set-{set_id}-{fence}"

    async def open(self, set_id: int, fence: int) -> Path:
        """Make the folder of a set, out of the one that was kept for it if there is one."""
        path = self.folder(set_id, fence)
        kept = self._kept.pop(set_id, None)
        if kept is not None:
            with faults.around("workspace.reopen"):
                await asyncio.to_thread(kept.rename, path)
            return path
        with faults.around("workspace.open"):
            await asyncio.to_thread(path.mkdir, mode=0o700, parents=True, exist_ok=True)
        return path

    async def keep(self, set_id: int, fence: int) -> None:
        """Leave the folder of a set for its next attempt; nobody may be writing to it any more."""
        path = self.folder(set_id, fence)
        if not path.exists():
            return
        self._kept[set_id] = path
        if len(self._kept) > _MOST_KEPT:
            await self.forget([next(iter(self._kept))])

    @property
    def kept(self) -> list[int]:
        """The sets whose folders wait for another attempt."""
        return list(self._kept)

    async def forget(self, set_ids: Collection[int]) -> None:
        """Remove what was kept for these sets."""
        for set_id in set_ids:
            path = self._kept.pop(set_id, None)
            if path is not None:
                await _remove(path)

    async def make_room(self) -> bool:
        """Remove everything that was only kept; whether there was anything."""
        found = self.kept
        await self.forget(found)
        return bool(found)

    async def remove(self, set_id: int, fence: int) -> None:
        """Remove the folder of a set and what is in it, and what was kept of the set before."""
        await self.forget([set_id])
        await _remove(self.folder(set_id, fence))

    async def close(self) -> None:
        """Remove everything of this process."""
        with faults.around("workspace.close"):
            await asyncio.to_thread(shutil.rmtree, self._own, ignore_errors=True)

    def others(self) -> list[uuid.UUID]:
        """The processes whose folders are on this disk, but for this one."""
        if not self._root.exists():
            return []
        found = (_worker_of(path) for path in sorted(self._root.iterdir()) if path != self._own)
        return [worker_id for worker_id in found if worker_id is not None]

    async def remove_of(self, workers: Collection[uuid.UUID]) -> int:
        """Remove what dead processes left; how many folders."""
        for worker_id in workers:
            with faults.around("workspace.sweep"):
                await asyncio.to_thread(shutil.rmtree, self._root / str(worker_id), ignore_errors=True)
        return len(workers)


async def _remove(path: Path) -> None:
    with faults.around("workspace.remove"):
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


def _worker_of(path: Path) -> uuid.UUID | None:
    """Whose folder this is; None for what others put there (a NAS adds folders of its own)."""
    try:
        return uuid.UUID(path.name)
    except ValueError:
        return None


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
            with faults.around("workspace.append"):
                while view:
                    view = view[os.write(self._fd, view) :]
        except OSError as error:
            what = f"the disk took no more: {error.strerror}"
            raise DiskFullError(what, seconds=_FULL_DISK_RETRY_SECONDS, remedy="free some space") from error

    def close(self) -> None:
        os.close(self._fd)
