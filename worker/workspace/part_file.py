"""A download on the disk: written in any order, hashed in order, resumed after a kill.

Beside the data lies a map with one byte per range, set once the range is written. A process that is killed
loses neither: both are in the system's cache. A machine that went down may have kept the map and lost the
data, so a map from before the last boot counts for nothing.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, Protocol

import psutil

from worker import faults
from worker.errors import DiskFullError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FULL_DISK_RETRY_SECONDS = 60.0
_HEAD_BYTES = 32
# What one range may catch up on behind it: more would hold up the other transfers of the thread.
_CATCH_UP = 8


class Digest(Protocol):
    """What is told of a file's bytes in order."""

    def update(self, data: memoryview, /) -> None:
        """Take the next bytes; they are gone when this returns."""
        ...


class PartFile:
    """One file of a set. ``take`` may be called from another thread until ``close`` returns."""

    def __init__(self, path: Path, size: int, *, unit: int, identity: str, digests: Sequence[Digest]) -> None:
        self.path, self.size, self._unit = path, size, unit
        self._digests = digests
        self._count = -(-size // unit)
        self._hashed = 0
        self._lock = threading.Lock()
        self._is_open = True
        self._scratch = bytearray(0)
        with faults.around("workspace.part"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._map = os.open(path.with_suffix(".map"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._there = self._read_map(_head(identity, size, unit))

    def _read_map(self, head: bytes) -> bytearray:
        stored = os.pread(self._map, _HEAD_BYTES + self._count, 0)
        if stored[:_HEAD_BYTES] == head:
            return bytearray(stored[_HEAD_BYTES:].ljust(self._count, b"\0"))
        with faults.around("workspace.map"):
            os.ftruncate(self._map, 0)
            os.ftruncate(self._file, 0)
            os.pwrite(self._map, head, 0)
        return bytearray(self._count)

    @property
    def done(self) -> int:
        """How many bytes are there."""
        last = self.size - (self._count - 1) * self._unit
        return sum(self._there) * self._unit - (self._unit - last if self._count and self._there[-1] else 0)

    @property
    def is_complete(self) -> bool:
        """Whether every range is there and hashed."""
        return self._hashed == self._count

    def missing(self) -> list[int]:
        """Which ranges are still to come."""
        return [number for number, there in enumerate(self._there) if not there]

    def take(self, offset: int, data: memoryview) -> None:
        """Keep one range. A full disk is a reason to wait, not to fail."""
        number, position = offset // self._unit, offset
        with self._lock:
            if not self._is_open:
                raise RetryableError("the download was given up")
            view = data
            try:
                with faults.around("workspace.write"):
                    while view:
                        written = os.pwrite(self._file, view, position)
                        view, position = view[written:], position + written
                with faults.around("workspace.mark"):
                    os.pwrite(self._map, b"\1", _HEAD_BYTES + number)
            except OSError as error:
                what = f"the disk took no more: {error.strerror}"
                raise DiskFullError(
                    what, seconds=_FULL_DISK_RETRY_SECONDS, remedy="free some space"
                ) from error
            self._there[number] = 1
            if number == self._hashed:
                self._hash(data)
                self._catch_up(_CATCH_UP)

    def _hash(self, data: memoryview) -> None:
        for digest in self._digests:
            digest.update(data)
        self._hashed += 1

    def _catch_up(self, most: int) -> None:
        """Hash ranges that came early, now that all before them are hashed."""
        while most and self._hashed < self._count and self._there[self._hashed]:
            if not self._scratch:
                self._scratch = bytearray(self._unit)
            offset = self._hashed * self._unit
            view = memoryview(self._scratch)[: min(self._unit, self.size - offset)]
            if os.preadv(self._file, [view], offset) != len(view):
                raise RetryableError(f"{self.path.name} has lost bytes on the disk")
            self._hash(view)
            most -= 1

    def hash_what_is_there(self) -> None:
        """Hash up to the first missing range. Blocking: run it in a thread."""
        while self._hashed < self._count and self._there[self._hashed]:
            with self._lock:
                self._catch_up(_CATCH_UP)

    def close(self) -> None:
        """No more is taken; returns when the range that is being written is."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._file)
                os.close(self._map)


def _head(identity: str, size: int, unit: int) -> bytes:
    """What a map has to begin with to be believed: the same file, since the same boot."""
    return hashlib.sha256(f"{identity} {size} {unit} {_boot()}".encode()).digest()


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - a kernel's answer, no file of ours
            return file.read().strip()
    except OSError:
        return str(int(psutil.boot_time()))
