"""Frames between the fleet and a parser child: one letter, a length, a payload.

Payloads are JSON or plain bytes. Nothing that could run code when it is read (pickle, marshal) crosses from a
process that has looked at hostile bytes.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

HEADER = struct.Struct(">cI")
READ = struct.Struct(">IQI")
STATUS = struct.Struct(">i")
MAX_READ = 1024 * 1024
# Beyond the largest batch of entries a child sends at once; a longer frame is a child gone wrong.
MAX_FRAME = 16 * 1024 * 1024


class Frame(Enum):
    """What a frame carries."""

    JOB = b"J"  # to the child: what to do, JSON
    READ = b"R"  # from the child: part, offset, length
    DATA = b"D"  # to the child: the bytes asked for
    PROOF = b"C"  # from the child: whether the parts are complete, JSON
    ENTRIES = b"E"  # from the child: a batch of entries, JSON
    LISTED = b"L"  # from the child: the listing is done, its contents are still to be checked, JSON
    PICTURE = b"P"  # from the child: bytes of a thumbnail
    RESULT = b"F"  # from the child: the end, JSON
    STATUS = b"S"  # from the nursery: how the child ended


def pack(frame: Frame, payload: bytes) -> bytes:
    """One frame as bytes."""
    return HEADER.pack(frame.value, len(payload)) + payload


def send(channel: socket.socket, frame: Frame, payload: bytes) -> None:
    """Write one frame to a blocking socket."""
    channel.sendall(pack(frame, payload))


def receive(channel: socket.socket) -> tuple[Frame, bytes]:
    """Read one frame from a blocking socket; raises ``EOFError`` when the other end is gone."""
    letter, length = HEADER.unpack(_exactly(channel, HEADER.size))
    return Frame(letter), _exactly(channel, length)


def _exactly(channel: socket.socket, length: int) -> bytes:
    buffer = bytearray(length)
    view = memoryview(buffer)
    have = 0
    while have < length:
        count = channel.recv_into(view[have:])
        if count == 0:
            raise EOFError("the fleet closed the channel")
        have += count
    return bytes(buffer)
