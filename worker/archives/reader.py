"""Bytes of a part, by range: what parsers are fed from, whether the part lies on disk or on a server."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from worker.domain.archive_name import ArchiveFormat, Scheme


class RangeReader(Protocol):
    """Random access to a fixed number of bytes."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    async def read_at(self, offset: int, length: int) -> bytes:
        """The bytes from ``offset`` on; fewer than ``length`` only where the part ends."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a set under its posted name."""

    name: str
    reader: RangeReader


@dataclass(frozen=True, slots=True)
class SetBytes:
    """A set as the parsers need it: what its names say, and its parts in order."""

    format: ArchiveFormat
    scheme: Scheme
    parts: tuple[Part, ...]
    indices: tuple[int, ...]


class FileReader:
    """Ranges of a local file. Closed by leaving its ``with`` block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    async def read_at(self, offset: int, length: int) -> bytes:
        return await asyncio.to_thread(os.pread, self._fd, length, offset)

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BytesReader:
    """Ranges of bytes that are in memory already."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    async def read_at(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


class JoinedReader:
    """Several readers as one run of bytes, without copying them together anywhere."""

    def __init__(self, readers: Sequence[RangeReader]) -> None:
        self._readers = tuple(readers)
        self.size = sum(reader.size for reader in readers)

    async def read_at(self, offset: int, length: int) -> bytes:
        pieces: list[bytes] = []
        for reader in self._readers:
            if length <= 0:
                break
            if offset >= reader.size:
                offset -= reader.size
                continue
            piece = await reader.read_at(offset, min(length, reader.size - offset))
            pieces.append(piece)
            length -= len(piece)
            offset = 0
        return b"".join(pieces)
