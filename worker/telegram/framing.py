"""Packets cut out of the library's connections, with bounds: nothing on the way is trusted with a length.

The framings are abridged (a byte or four, in words) and intermediate with padding (four bytes). Where a
length should stand, four bytes with the highest bit set are a quick acknowledgement. None is asked for
here, so they are dropped, and a line that carries nothing else is given up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    # Reads exactly so many bytes; None at the end of the connection.
    Read = Callable[[int], Awaitable[bytes | None]]

# No answer of Telegram comes near it.
LARGEST_PACKET = 1 << 24
# In a row, and on the whole of a connection.
MOST_QUICK_ACKS = 1000
_QUICK_ACK = 0x80
_LONG = 0x7F
_HEAD, _BLOCK, _ERROR = 24, 16, 4


class FramingError(ConnectionError):
    """What came is no packet."""


class QuickAcks:
    """Acknowledgements that were not asked for: dropped, as long as there are not too many of them."""

    def __init__(self) -> None:
        self._count = 0

    def dropped(self) -> None:
        self._count += 1
        if self._count > MOST_QUICK_ACKS:
            raise FramingError(f"more than {MOST_QUICK_ACKS} acknowledgements came that were not asked for")


def checked_length(length: int) -> int:
    """This length, if a packet may have it."""
    if not 0 < length <= LARGEST_PACKET:
        raise FramingError(f"a packet of {length} bytes was announced")
    return length


def unpadded(length: int) -> int:
    """How long a packet of this length is without what was added to hide its length."""
    return length - (length - _HEAD) % _BLOCK if length >= _HEAD else min(length, _ERROR)


async def abridged_packet(read: Read, acks: QuickAcks) -> bytes | None:
    """The next packet of a connection in the abridged framing."""
    while True:
        if (head := await read(1)) is None:
            return None
        if head[0] & _QUICK_ACK:
            acks.dropped()
            if await read(3) is None:
                return None
            # A line full of them must not keep everybody else from his turn.
            await asyncio.sleep(0)
            continue
        words = head[0]
        if words == _LONG:
            if (rest := await read(3)) is None:
                return None
            words = int.from_bytes(rest, "little")
        return await read(checked_length(words * 4))


async def padded_packet(read: Read, acks: QuickAcks) -> bytes | None:
    """The next packet of a connection in the padded intermediate framing, without its padding."""
    while True:
        if (head := await read(4)) is None:
            return None
        length = int.from_bytes(head, "little")
        if length >> 31:
            acks.dropped()
            await asyncio.sleep(0)
            continue
        packet = await read(checked_length(length))
        if packet is None or not any(packet[:8]):
            # A message in the clear, of the key exchange, says itself how long it is.
            return packet
        return packet[: unpadded(length)]
