"""The few TL encodings that are written by hand."""

from __future__ import annotations

import gzip
import zlib
from io import BytesIO
from typing import Any

from pyrogram.raw.core import Bool, Int, Long, TLObject, Vector
from pyrogram.raw.core.primitives.bytes import Bytes

CONTAINER_ID = 0x73F1F8DC
CONTAINER_LIMIT = 1020
RPC_RESULT_ID = 0xF35C6D01
FILE_ID = 0x096A18D5
GZIP_ID = 0x3072CFA1
# Small answers do not shrink; file chunks never pass through here.
GZIP_FROM = 1024


class MalformedError(Exception):
    """Bytes that are no TL object, whatever was meant."""


class Encoded:
    """Bytes in the place of a TL object."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def write(self) -> bytes:
        return self._data


def boolean(value: bool) -> Encoded:
    return Encoded(Bool(value))


def read_vector(data: bytes | None) -> list[Any]:
    """Return the objects of a stored vector, none of None."""
    return [] if data is None else list(TLObject.read(BytesIO(data)))


def write_vector(items: list[Any] | None) -> bytes | None:
    """Return a list of objects as bytes to store; None of an empty one."""
    return bytes(Vector(items)) if items else None


def read(data: bytes) -> Any:
    """Read one object; an unknown constructor is a ``KeyError``, other nonsense ``MalformedError``."""
    try:
        return TLObject.read(BytesIO(data))
    except KeyError:
        raise
    except (ValueError, TypeError, AttributeError, LookupError, EOFError, OSError, zlib.error) as error:
        # The library's readers check no lengths: a short object fails wherever its missing bytes are used.
        raise MalformedError(str(error)) from error


def container(messages: list[tuple[int, int, bytes]]) -> bytes:
    """Pack (msg_id, seq_no, body) triples into one message."""
    pieces = [Int(CONTAINER_ID, False), Int(len(messages))]
    for msg_id, seq_no, body in messages:
        pieces += [Long(msg_id), Int(seq_no), Int(len(body)), body]
    return b"".join(pieces)


def split_container(body: bytes) -> list[tuple[int, int, bytes]] | None:
    """Return the messages of a container, None if the body is something else."""
    if int.from_bytes(body[:4], "little") != CONTAINER_ID:
        return None
    messages, position = [], 8
    count = int.from_bytes(body[4:8], "little")
    if count > CONTAINER_LIMIT:
        raise MalformedError(f"a container of {count} messages")
    for _ in range(count):
        length = int.from_bytes(body[position + 12 : position + 16], "little")
        start = position + 16
        if start + length > len(body):
            raise MalformedError("a container that promises more than it holds")
        messages.append(
            (
                int.from_bytes(body[position : position + 8], "little", signed=True),
                int.from_bytes(body[position + 8 : position + 12], "little"),
                body[start : start + length],
            )
        )
        position = start + length
    return messages


def file_chunk(kind: bytes, mtime: int, data: bytes) -> tuple[bytes, ...]:
    """An ``upload.file`` in pieces: its bytes are not copied together until they are packed."""
    size = len(data)
    head = bytes([size]) if size < 254 else b"\xfe" + size.to_bytes(3, "little")
    return Int(FILE_ID, False) + kind + Int(mtime) + head, data, bytes(-(len(head) + size) % 4)


def rpc_result(req_msg_id: int, *result: bytes, compress: bool) -> bytes:
    """Return the answer to a call, zipped where the real server zips."""
    if compress and sum(map(len, result)) >= GZIP_FROM:
        result = (Int(GZIP_ID, False), Bytes(gzip.compress(b"".join(result), compresslevel=1)))
    return b"".join((Int(RPC_RESULT_ID, False), Long(req_msg_id), *result))
