"""SHA-256 of a set: one over all its bytes in order, one per part."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from worker.archives.reader import RangeReader

# Large enough that handing a piece to a thread costs nothing beside hashing it.
PIECE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SetDigest:
    """What identifies the content (``content``) and each file of it."""

    content: bytes
    parts: tuple[bytes, ...]
    size: int


class SetHasher:
    """Takes the bytes of a set in order as they arrive; say :meth:`end_part` after each part."""

    def __init__(self) -> None:
        self._content: hashlib._Hash | None = None
        self._part = hashlib.sha256()
        self._parts: list[bytes] = []
        self._size = 0

    async def update(self, data: bytes) -> None:
        """Hash a piece on worker threads; both hashes of a later part are computed side by side."""
        self._size += len(data)
        hashes = [asyncio.to_thread(self._part.update, data)]
        if self._content is not None:
            hashes.append(asyncio.to_thread(self._content.update, data))
        await asyncio.gather(*hashes)

    def end_part(self) -> None:
        """Close the current part."""
        self._parts.append(self._part.digest())
        if self._content is None:
            # Up to here both hashes are over the same bytes: the first part is hashed once.
            self._content = self._part
        self._part = hashlib.sha256()

    def finish(self) -> SetDigest:
        """The digest of everything up to the last :meth:`end_part`."""
        content = self._content if self._content is not None else hashlib.sha256()
        return SetDigest(content.digest(), tuple(self._parts), self._size)


async def digest_set(readers: Sequence[RangeReader]) -> SetDigest:
    """Hash a set from its readers, reading ahead while hashing."""
    hasher = SetHasher()
    for reader in readers:
        async for piece in _pieces(reader):
            await hasher.update(piece)
        hasher.end_part()
    return hasher.finish()


async def _pieces(reader: RangeReader) -> AsyncIterator[bytes]:
    """The reader's bytes in order, the next piece being fetched while the last is used."""
    ahead: asyncio.Task[bytes] | None = None
    try:
        for offset in range(0, reader.size, PIECE):
            data = await (ahead or reader.read_at(offset, PIECE))
            following = offset + PIECE
            ahead = asyncio.ensure_future(_read(reader, following)) if following < reader.size else None
            yield data
    finally:
        if ahead is not None:
            ahead.cancel()


async def _read(reader: RangeReader, offset: int) -> bytes:
    return await reader.read_at(offset, PIECE)
