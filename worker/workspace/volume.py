"""The disk below the workspace: which one it is, how large, and how much of it is free."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from worker.domain.disk_space import Space

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Volume:
    """The file system that a folder lies on, found through the nearest parent that exists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def name(self) -> str:
        """The same for all processes of a host that share the disk, in containers too.

        Containers have host names of their own; the kernel's boot id is one for all of them.
        """
        host = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else socket.gethostname()
        return f"{host}:{self._nearest().stat().st_dev}"

    def space(self) -> Space:
        """Free to ordinary users, and in all."""
        figures = os.statvfs(self._nearest())
        return Space(figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize)

    def _nearest(self) -> Path:
        folder = self._folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return folder
