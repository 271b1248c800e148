"""One folder per process, in it one per set; each is gone when its work ends.

What a set that has to wait has fetched so far may be kept for its next owner: of a few sets at most, and only
until the disk space is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import uuid
from typing import TYPE_CHECKING

from worker import faults
from worker.workspace.volume import Volume

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from worker.domain.disk_space import Space

_MOST_KEPT = 8


class Workspace:
    """The downloads of one process. Paths are made of our own numbers only."""

    def __init__(self, root: Path, worker_id: uuid.UUID) -> None:
        self._root = root
        self._own = root / str(worker_id)
        self._volume = Volume(root)
        self._kept: dict[int, Path] = {}
        self._dead: list[uuid.UUID] = []

    @property
    def name(self) -> str:
        """The volume that the folders are on."""
        return self._volume.name()

    async def space(self) -> Space:
        """How much of it is free."""
        return await asyncio.to_thread(self._volume.space)

    def folder(self, set_id: int, fence: int) -> Path:
        """Where this owner of the set keeps its files."""
        return self._own / f"set-{set_id}-{fence}"

    async def open(self, set_id: int, fence: int) -> Path:
        """Make the folder of a set, with what an earlier owner on this disk has left of it."""
        self._kept.pop(set_id, None)
        return await asyncio.to_thread(self._open, set_id, fence)

    def _open(self, set_id: int, fence: int) -> Path:
        path = self.folder(set_id, fence)
        with faults.around("workspace.open"):
            self._own.mkdir(mode=0o700, parents=True, exist_ok=True)
        left = self._left_by_others(set_id, fence)
        if left and not path.exists():
            # The fence proves that nobody else may use it; a folder that vanishes meanwhile is not missed.
            with contextlib.suppress(OSError), faults.around("workspace.adopt"):
                left[-1].rename(path)
                _remove_if_empty(left[-1].parent)
        with faults.around("workspace.open_set"):
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def _left_by_others(self, set_id: int, fence: int) -> list[Path]:
        """Folders of this set that belong to earlier owners, the last one at the end."""
        found = [
            (left, path)
            for path in self._root.glob(f"*/set-{set_id}-*")
            if (left := _fence_of(path)) is not None and left < fence
        ]
        return [path for _, path in sorted(found)]

    async def remove(self, set_id: int, fence: int) -> None:
        """Remove the folder of a set and what is in it, and what earlier owners have left of it."""
        await asyncio.to_thread(self._remove, set_id, fence)

    def _remove(self, set_id: int, fence: int) -> None:
        for path in [*self._left_by_others(set_id, fence), self.folder(set_id, fence)]:
            with faults.around("workspace.remove"):
                shutil.rmtree(path, ignore_errors=True)
            if path.parent != self._own:
                _remove_if_empty(path.parent)

    async def keep(self, set_id: int, fence: int) -> None:
        """Leave the folder of a set to its next owner; nobody may be writing to it any more."""
        path = self.folder(set_id, fence)
        if path.exists():
            self._kept[set_id] = path
        if len(self._kept) > _MOST_KEPT:
            await self.forget([next(iter(self._kept))])

    @property
    def kept(self) -> list[int]:
        """The sets whose folders this process has left to their next owners."""
        return list(self._kept)

    async def forget(self, set_ids: Collection[int]) -> None:
        """Remove what was kept of these sets."""
        for set_id in set_ids:
            path = self._kept.pop(set_id, None)
            if path is not None:
                await asyncio.to_thread(self._discard, path)

    async def make_room(self) -> bool:
        """Remove what is only kept, by this process or of dead ones; whether anything was."""
        kept = [path for path in self._kept.values() if path.exists()]
        kept += [path for worker in self._dead for path in (self._root / str(worker)).glob("set-*")]
        self._kept.clear()
        return any([await asyncio.to_thread(self._discard, path) for path in kept])

    def _discard(self, path: Path) -> bool:
        """Remove a folder that its set's next owner may be adopting right now: one of both gets it whole."""
        away = self._own / f"discarded-{uuid.uuid4().hex}"
        try:
            with faults.around("workspace.remove"):
                self._own.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.rename(away)
                shutil.rmtree(away, ignore_errors=True)
        except OSError:
            return False
        return True

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

    def sets_of(self, workers: Collection[uuid.UUID]) -> set[int]:
        """The sets of which these processes have left files here."""
        paths = (path for worker in workers for path in (self._root / str(worker)).glob("set-*"))
        return {set_id for path in paths if (set_id := _set_of(path)) is not None}

    async def remove_of(self, workers: Collection[uuid.UUID], *, keep: Collection[int] = ()) -> int:
        """Remove what dead processes left, but for the sets to ``keep``: their next owner goes on from there.

        How many processes have nothing left here.
        """
        self._dead = list(workers)
        return sum([await asyncio.to_thread(self._sweep, worker_id, keep) for worker_id in workers])

    def _sweep(self, worker_id: uuid.UUID, keep: Collection[int]) -> bool:
        folder = self._root / str(worker_id)
        try:
            found = list(folder.iterdir())
        except FileNotFoundError:
            # Every process of this host sweeps: another one was quicker.
            return False
        for path in [path for path in found if _set_of(path) not in keep]:
            with faults.around("workspace.sweep"):
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)
        return _remove_if_empty(folder)


def _worker_of(path: Path) -> uuid.UUID | None:
    """Whose folder this is; None for what others put there (a NAS adds folders of its own)."""
    try:
        return uuid.UUID(path.name)
    except ValueError:
        return None


_SET_FOLDER = re.compile(r"set-(\d+)-(\d+)")


def _set_of(path: Path) -> int | None:
    found = _SET_FOLDER.fullmatch(path.name)
    return int(found[1]) if found else None


def _fence_of(path: Path) -> int | None:
    found = _SET_FOLDER.fullmatch(path.name)
    return int(found[2]) if found else None


def _remove_if_empty(folder: Path) -> bool:
    try:
        with faults.around("workspace.rmdir"):
            folder.rmdir()
    except OSError:
        return False
    return True
