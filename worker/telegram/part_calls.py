"""The calls that move file parts, written and read as bytes: no object is made of a part.

A call's ``write`` and ``read`` run in the porter's thread. ``write`` puts the query into the packet that is
about to leave; ``read`` is given the answer inside the packet that came, and takes the bytes from there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyrogram import raw

from worker.errors import RetryableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.domain.telegram import Document

_RANGE = struct.Struct("<qi")
_BIG_PART = struct.Struct("<Iqii")
_SMALL_PART = struct.Struct("<Iqi")
_TRUE = 0x997275B5
_FILE, _REDIRECT = raw.types.upload.File.ID, raw.types.upload.FileCdnRedirect.ID
_VECTOR_ID = 0x1CB5C415
_VECTOR = struct.Struct("<Ii")
# Constructor, offset, length, and a byte string of 32 with its head and padding.
_HASH = struct.Struct("<IqiB32s3x")
# Of a whole mebibyte there are eight.
_MOST_HASHES = 4096
# Constructor, type and time stand before the bytes of a file chunk.
_FILE_HEAD = 12


class RangeHash(NamedTuple):
    """The SHA-256 of one range of a file."""

    offset: int
    length: int
    digest: bytes


class PartCall(Protocol):
    """One call on a file connection."""

    method: str
    is_upload: bool

    def write(self, body: memoryview) -> int:
        """Put the query into ``body``; how many bytes it has."""
        ...

    def read(self, answer: memoryview) -> Any:
        """Take what the server answered; raise if that is no success."""
        ...


def location_of(document: Document) -> bytes:
    """The query for a range of this document, up to where offset and limit stand."""
    return query_for(
        raw.types.InputDocumentFileLocation(
            id=document.document_id,
            access_hash=document.access_hash,
            file_reference=document.reference,
            thumb_size="",
        )
    )


def query_for(location: Any) -> bytes:
    """The query for a range of whatever lies there, up to where offset and limit stand."""
    query = raw.functions.upload.GetFile(location=location, offset=0, limit=0)
    return bytes(query.write()[: -_RANGE.size])


class ReadRange:
    """``upload.getFile``: one range, handed to ``take`` whole or not at all.

    ``expected`` is how many bytes there must be; None where only the server knows. They have to agree with
    ``hashes``, as far as there are any.
    """

    method = "upload.GetFile"
    is_upload = False

    def __init__(
        self,
        location: bytes,
        offset: int,
        limit: int,
        expected: int | None,
        take: Callable[[int, memoryview], Any],
        hashes: Sequence[RangeHash] = (),
    ) -> None:
        self._hashes = hashes
        self._location, self._offset, self._limit, self._expected = location, offset, limit, expected
        self._take = take

    def write(self, body: memoryview) -> int:
        query = self._location + _RANGE.pack(self._offset, self._limit)
        body[: len(query)] = query
        return len(query)

    def read(self, answer: memoryview) -> Any:
        kind = int.from_bytes(answer[:4], "little")
        if kind == _REDIRECT:
            raise RetryableError(f"{self.method}: redirected to a CDN, which is not followed")
        if kind != _FILE:
            raise RetryableError(f"{self.method}: answered with {kind:#x}, which is no file")
        data = tl_bytes(answer, _FILE_HEAD)
        if self._expected is not None and len(data) != self._expected:
            raise RetryableError(f"{self.method}: {len(data)} of {self._expected} bytes at {self._offset}")
        return Unverified(self, data) if self._hashes else self._take(self._offset, data)

    def ranges(self, data: memoryview) -> list[memoryview]:
        """The pieces of the answer of which the server has told the hash."""
        starts = [(known.offset - self._offset, known.length) for known in self._hashes]
        return [data[start : start + length] for start, length in starts]

    def settle(self, data: memoryview, digests: Sequence[bytes]) -> Any:
        """Hand the answer on, if its pieces hash to what the server has told."""
        for known, digest in zip(self._hashes, digests, strict=True):
            if known.digest != digest:
                raise RetryableError(f"{self.method}: the bytes at {known.offset} are not the server's")
        return self._take(self._offset, data)


class Unverified(NamedTuple):
    """An answer that is compared with the server's hashes before anybody gets it, together with others."""

    call: ReadRange
    data: memoryview


class SavePart:
    """``upload.saveBigFilePart`` or ``upload.saveFilePart``: the bytes go from the file into the packet."""

    is_upload = True

    def __init__(
        self, file_id: int, part: int, total: int | None, length: int, fill: Callable[[memoryview], None]
    ) -> None:
        self._length, self._fill, self._part = length, fill, part
        if total is None:
            self.method = "upload.SaveFilePart"
            self._head = _SMALL_PART.pack(raw.functions.upload.SaveFilePart.ID, file_id, part)
        else:
            self.method = "upload.SaveBigFilePart"
            self._head = _BIG_PART.pack(raw.functions.upload.SaveBigFilePart.ID, file_id, part, total)

    def write(self, body: memoryview) -> int:
        head = self._head + tl_length(self._length)
        start, end = len(head), len(head) + self._length
        body[:start] = head
        self._fill(body[start:end])
        padding = -end % 4
        body[end : end + padding] = bytes(padding)
        return end + padding

    def read(self, answer: memoryview) -> None:
        if int.from_bytes(answer[:4], "little") != _TRUE:
            raise RetryableError(f"{self.method}: the server did not keep part {self._part}")


def tl_length(length: int) -> bytes:
    """The head of a TL byte string."""
    return bytes([length]) if length < 254 else b"\xfe" + length.to_bytes(3, "little")


def tl_bytes(data: memoryview, at: int) -> memoryview:
    """The TL byte string that begins at ``at``; shorter than it says if the packet ends before."""
    if data[at] < 254:
        return data[at + 1 : at + 1 + data[at]]
    length = int.from_bytes(data[at + 1 : at + 4], "little")
    return data[at + 4 : at + 4 + length]


class ReadHashes:
    """``upload.getFileHashes``: what the server says the ranges from ``offset`` on hash to."""

    method = "upload.GetFileHashes"
    is_upload = False

    def __init__(self, location: bytes, offset: int) -> None:
        head = raw.functions.upload.GetFileHashes.ID.to_bytes(4, "little")
        # The location stands behind constructor and flags of the query for a range.
        self._query = head + location[8:] + offset.to_bytes(8, "little")

    def write(self, body: memoryview) -> int:
        body[: len(self._query)] = self._query
        return len(self._query)

    def read(self, answer: memoryview) -> list[RangeHash]:
        kind, count = _VECTOR.unpack_from(answer)
        is_list = kind == _VECTOR_ID and 0 <= count <= _MOST_HASHES
        if not is_list or len(answer) < _VECTOR.size + count * _HASH.size:
            raise RetryableError(f"{self.method}: answered with {kind:#x}, which is no list of hashes")
        found = _HASH.iter_unpack(answer[_VECTOR.size : _VECTOR.size + count * _HASH.size])
        return [RangeHash(offset, length, digest) for _, offset, length, _, digest in found]
