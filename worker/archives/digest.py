"""SHA-256 of a set: one over all its bytes in order, one per part.

The bytes of every part but the first are hashed twice, for the content and for the part. The two hashes run
in threads of their own, and neither waits for the other but at the end: with two free cores a set takes as
long as one pass of ``hashlib`` over its bytes, on one core up to twice that.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from worker.archives.reader import RangeReader

# Large enough that handing a piece to a thread costs nothing beside hashing it.
PIECE = 2 * 1024 * 1024
# So many pieces may wait for a thread, and be held in memory.
BEHIND = 4


@dataclass(frozen=True, slots=True)
class SetDigest:
    """What identifies the content (``content``) and each file of it."""

    content: bytes
    parts: tuple[bytes, ...]
    size: int


class _Lane:
    """One thread that does what it is given, in order; whoever gives too much at once waits."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def hand(self, work: Callable[[bytes], None], data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._waiting.append(loop.run_in_executor(self._thread, work, data))
        while len(self._waiting) > BEHIND or (self._waiting and self._waiting[0].done()):
            await self._waiting.popleft()

    def ask(self, question: Callable[[], bytes]) -> asyncio.Future[bytes]:
        """The answer once everything handed in before is done."""
        return asyncio.get_running_loop().run_in_executor(self._thread, question)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class SetHasher:
    """Takes the bytes of a set in order as they arrive; say :meth:`end_part` after each part.

    Used as a context manager, which ends its threads::

        with SetHasher() as hasher:
            await hasher.update(data)
            hasher.end_part()
            digest = await hasher.finish()
    """

    def __init__(self) -> None:
        self._content = hashlib.sha256()
        self._part = hashlib.sha256()
        self._content_lane = _Lane()
        self._part_lane = _Lane()
        self._parts: list[asyncio.Future[bytes]] = []
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._content_lane.close()
        self._part_lane.close()

    async def update(self, data: bytes) -> None:
        """Take a piece; returns when there is room for the next."""
        self._size += len(data)
        await self._content_lane.hand(self._content.update, data)
        if self._parts:
            await self._part_lane.hand(self._part.update, data)

    def end_part(self) -> None:
        """Close the current part."""
        # Up to the end of the first part both hashes are over the same bytes: it is hashed once.
        lane, state = (self._part_lane, self._part) if self._parts else (self._content_lane, self._content)
        self._parts.append(lane.ask(state.digest))
        self._part = hashlib.sha256()

    async def finish(self) -> SetDigest:
        """The digest of everything up to the last :meth:`end_part`."""
        parts = await asyncio.gather(*self._parts)
        content = await self._content_lane.ask(self._content.digest)
        return SetDigest(content, tuple(parts), self._size)


async def digest_set(readers: Sequence[RangeReader]) -> SetDigest:
    """Hash a set from its readers, reading ahead while hashing."""
    with SetHasher() as hasher:
        for reader in readers:
            async for piece in _pieces(reader):
                await hasher.update(piece)
            hasher.end_part()
        return await hasher.finish()


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
