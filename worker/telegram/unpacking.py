"""What the library reads out of packets, with bounds: no length and no count of theirs is taken on trust.

The library's readers check nothing: a count of two thousand million makes as many objects, and a few
kilobytes unzip to gigabytes. ``install`` puts bounded readers in the place of those that count or unzip, and
has the envelope proven before a byte of its content is read. What does not hold is ``MalformedError``.

A message that holds an object of another schema is ``Unreadable``, and costs its own call alone.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.crypto import mtproto
from pyrogram.raw.core import FutureSalts, GzipPacked, Message, MsgContainer, TLObject, Vector
from pyrogram.raw.core.list import List
from pyrogram.raw.core.primitives import Bytes, Int

from worker.telegram.envelope import EnvelopeError, Key, open_all

if TYPE_CHECKING:
    from collections.abc import Callable

# No packet of Telegram is larger, unzipped or not.
MOST_UNZIPPED = 1 << 24
# Text shrinks to a tenth. But anybody may post a hundred of the longest messages of one letter each: their
# page, of more than a mebibyte, shrinks to some kilobytes, and has to be read, or its source never is.
_MOST_RATIO, _ALWAYS_ALLOWED = 100, 1 << 23
_GZIP = 16 + zlib.MAX_WBITS
# As many as the protocol allows in one container, or as future salts.
MOST_MESSAGES = 1020
_MOST_SALTS = 64
_SHORTEST_ITEM = 4


class MalformedError(EnvelopeError):
    """Bytes that are no object of the schema, or more of them than any answer has."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the place of an object that the server has sent and that is in no schema known here."""

    reason: str


class _Allowance(threading.local):
    """What may still be unzipped of the packet that this thread reads, and whether it is at it."""

    left = MOST_UNZIPPED
    unzipping = False


_allowance = _Allowance()


def unzipped(packed: bytes | memoryview, most: int = MOST_UNZIPPED) -> bytes:
    """The content of a gzip stream, if it is whole and no larger than such content may be."""
    bound = min(most, max(_ALWAYS_ALLOWED, _MOST_RATIO * len(packed)))
    stream = zlib.decompressobj(_GZIP)
    try:
        data = stream.decompress(packed, bound + 1)
    except zlib.error as error:
        raise MalformedError(f"what is zipped cannot be unzipped: {error}") from error
    if len(data) > bound:
        raise MalformedError(f"{len(packed)} bytes unzip to more than {bound}")
    if not stream.eof:
        raise MalformedError("what is zipped ends too early")
    return data


def read_object(body: bytes | memoryview) -> Any:
    """The object that these bytes are; ``MalformedError`` if they are none."""
    return _bounded(_whole, body)


def _whole(body: bytes | memoryview) -> Any:
    return TLObject.read(BytesIO(body))


def _bounded(read: Callable[[bytes | memoryview], Any], body: bytes | memoryview) -> Any:
    _allowance.left, _allowance.unzipping = MOST_UNZIPPED, False
    try:
        return read(body)
    except MalformedError:
        raise
    except Exception as error:
        # A short object fails wherever its missing bytes are used, in whatever way.
        raise MalformedError(f"not readable: {error!r}") from error


def _read_zipped(data: BytesIO, *_: Any) -> Any:
    packed = Bytes.read(data)
    if _allowance.unzipping:
        raise MalformedError("what is zipped holds something zipped")
    content = unzipped(packed, _allowance.left)
    _allowance.left -= len(content)
    _allowance.unzipping = True
    try:
        return TLObject.read(BytesIO(content))
    finally:
        _allowance.unzipping = False


def _left(data: BytesIO) -> int:
    return data.getbuffer().nbytes - data.tell()


def _read_vector(_: type, data: BytesIO, kind: Any = None, *__: Any) -> List:
    count, left = Int.read(data), _left(data)
    if not 0 <= count * _SHORTEST_ITEM <= left:
        raise MalformedError(f"a list of {count} in {left} bytes")
    if kind is not None:
        return List(kind.read(data) for _ in range(count))
    size = left / count if count else 0
    return List(Vector.read_bare(data, size) for _ in range(count))


def _read_container(data: BytesIO, *_: Any) -> MsgContainer:
    count = Int.read(data)
    if not 0 <= count <= MOST_MESSAGES:
        raise MalformedError(f"a container of {count} messages")
    return MsgContainer([_read_message(data) for _ in range(count)])


def _read_message(data: BytesIO, *_: Any) -> Message:
    head = data.read(16)
    length = int.from_bytes(head[12:], "little", signed=True)
    if len(head) < 16 or not 0 <= length <= _left(data):
        raise MalformedError(f"a message of {length} bytes in a container that ends before")
    body = _read_body(data.read(length))
    message_id = int.from_bytes(head[:8], "little", signed=True)
    return Message(body, message_id, int.from_bytes(head[8:12], "little", signed=True), length)


def _read_body(body: bytes | memoryview) -> Any:
    """A message of the server's. An unknown object in it costs neither the connection nor other messages."""
    try:
        return _whole(body)
    except KeyError as error:
        (kind,) = error.args
        unreadable = Unreadable(f"it holds an object of an unknown kind ({kind:#010x})")
    if int.from_bytes(body[:4], "little") != raw.types.RpcResult.ID:
        # News: whoever hears of it looks again.
        return unreadable
    answered = int.from_bytes(body[4:12], "little", signed=True)
    return raw.types.RpcResult(req_msg_id=answered, result=unreadable)


def _read_salts(data: BytesIO, *_: Any) -> FutureSalts:
    at = data.tell()
    data.seek(at + 12)
    count = Int.read(data)
    if not 0 <= count <= _MOST_SALTS:
        raise MalformedError(f"{count} salts")
    data.seek(at)
    return _library_salts(data)


def _unpack(data: BytesIO, session_id: bytes, auth_key: bytes, _: bytes) -> Message:
    """A packet's message. Who made it is proven before anything in it is looked at."""
    packet = memoryview(bytearray(data.read()))
    key = Key(auth_key)
    (digest,) = open_all([key.job(packet)])
    session = int.from_bytes(session_id, "little", signed=True)
    message_id, sequence, body = key.check(packet, digest, session)
    return Message(_bounded(_read_body, body), message_id, sequence, len(body))


_library_salts = FutureSalts.read


def install() -> None:
    """Have the client library read with bounds."""
    mtproto.unpack = _unpack
    GzipPacked.read = staticmethod(_read_zipped)
    Vector.read = classmethod(_read_vector)
    MsgContainer.read = staticmethod(_read_container)
    FutureSalts.read = staticmethod(_read_salts)
