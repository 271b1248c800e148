"""Ranges of a file that lies on Telegram's servers: a listing needs kilobytes of it, not all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.telegram.transfer import DOWN_BYTES, read_range

if TYPE_CHECKING:
    from worker.domain.telegram import Document
    from worker.telegram.gateway import Gateway

# The server wants offsets and limits in these steps, and no request across a border of 1 MiB.
_STEP = 4096


class RemoteReader:
    """Random access to one document; keeps the range it fetched last, since parsers read in small steps."""

    def __init__(self, gateway: Gateway, document: Document) -> None:
        self._gateway = gateway
        self._document = document
        self.size = document.size
        self._held_from = 0
        self._held = b""

    async def read_at(self, offset: int, length: int) -> bytes:
        """The bytes from ``offset`` on; fewer than ``length`` only where the file ends."""
        pieces = []
        end = min(offset + length, self.size)
        while offset < end:
            if not self._held_from <= offset < self._held_from + len(self._held):
                await self._fetch(offset, end)
            start = offset - self._held_from
            piece = self._held[start : start + end - offset]
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces)

    async def _fetch(self, offset: int, end: int) -> None:
        start = offset - offset % _STEP
        border = start - start % DOWN_BYTES + DOWN_BYTES
        # A power of two of steps always divides the mebibyte.
        limit = _STEP
        while start + limit < min(end, border):
            limit *= 2
        limit = min(limit, _largest_within(start))
        # Asked for also because it has lines opened: with one, readers of several files would wait in turn.
        depth = self._gateway.connections.depth(self._document.dc_id, "down")
        async with self._gateway.permission.parts("upload.getFile", depth.narrow) as permission:
            self._held = await read_range(self._gateway, self._document, start, limit, permission=permission)
        self._held_from = start


def _largest_within(start: int) -> int:
    """The largest power-of-two limit that does not cross the next border."""
    room = DOWN_BYTES - start % DOWN_BYTES
    limit = DOWN_BYTES
    while limit > room:
        limit //= 2
    return max(limit, _STEP)
