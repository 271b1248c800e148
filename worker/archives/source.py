"""The parser child's view of a set: seekable files whose bytes are fetched in ranges."""

from __future__ import annotations

import io
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A jump costs little, reading on costs few round trips: the window doubles while reads follow each other.
FIRST_WINDOW = 16 * 1024
LAST_WINDOW = 1024 * 1024


class Fetch(Protocol):
    """Get ``length`` bytes at ``offset`` of part number ``part``."""

    def __call__(self, part: int, offset: int, length: int) -> bytes:
        """Return exactly that many bytes, or raise ``OSError``."""
        ...


class RangeFile(io.RawIOBase):
    """A read-only file over a ranged fetch, with one window of bytes kept."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self.size = size
        self._fetch = fetch
        self._position = 0
        self._start = 0
        self._window = b""
        self._ahead = FIRST_WINDOW

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if origin + offset < 0:
            raise OSError("a header points before the beginning of the file")
        self._position = origin + offset
        return self._position

    def read(self, length: int | None = -1, /) -> bytes:
        rest = max(0, self.size - self._position)
        wanted = rest if length is None or length < 0 else min(length, rest)
        data = self.read_at(self._position, wanted)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]  # typeshed's Buffer is 3.12's
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read_at(self, offset: int, length: int) -> bytes:
        """Read without moving; short only at the end of the file."""
        length = max(0, min(length, self.size - offset))
        inside = offset - self._start
        if inside >= 0 and inside + length <= len(self._window):
            return self._window[inside : inside + length]
        pieces: list[bytes] = []
        while length > 0:
            inside = offset - self._start
            if not 0 <= inside < len(self._window):
                self._fill(offset, length)
                inside = 0
            piece = self._window[inside : inside + length]
            pieces.append(piece)
            offset += len(piece)
            length -= len(piece)
        return b"".join(pieces)

    def _fill(self, offset: int, length: int) -> None:
        follows = offset == self._start + len(self._window) and self._window
        self._ahead = min(self._ahead * 2, LAST_WINDOW) if follows else FIRST_WINDOW
        wanted = min(max(length, self._ahead), LAST_WINDOW, self.size - offset)
        self._window = self._fetch(offset, wanted)
        self._start = offset


class Parts:
    """All parts of a set: each by itself, or joined end to end."""

    def __init__(self, sizes: Sequence[int], fetch: Fetch) -> None:
        self.sizes = tuple(sizes)
        self.total = sum(sizes)
        self._ends = list(accumulate(self.sizes))
        self._fetch = fetch

    def __len__(self) -> int:
        return len(self.sizes)

    def volume(self, index: int) -> RangeFile:
        """The part at ``index`` as a file of its own."""
        return RangeFile(self.sizes[index], lambda offset, length: self._fetch(index, offset, length))

    def joined(self) -> RangeFile:
        """All parts as one file."""
        if len(self.sizes) == 1:
            return self.volume(0)
        return RangeFile(self.total, self._across)

    def start_of(self, index: int) -> int:
        """Where the part at ``index`` begins in the joined file."""
        return sum(self.sizes[:index])

    def spanned(self, position: int, length: int) -> range:
        """The numbers of the parts in which these bytes of the joined file lie."""
        first = bisect_right(self._ends, position)
        last = bisect_right(self._ends, position + max(length, 1) - 1)
        return range(min(first, len(self)), min(last + 1, len(self)))

    def _across(self, offset: int, length: int) -> bytes:
        pieces: list[bytes] = []
        for index, size in enumerate(self.sizes):
            if length <= 0:
                break
            if offset >= size:
                offset -= size
                continue
            piece = self._fetch(index, offset, min(length, size - offset))
            pieces.append(piece)
            length -= len(piece)
            offset = 0
        return b"".join(pieces)
