"""Whether the slices of a 7z archive are all there: its first 32 bytes say where it must end."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.archives.whole import NotWholeError
from worker.domain.archive_name import Scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile

START = struct.Struct("<6s2sLQQL")
MAGIC = b"7z\xbc\xaf\x27\x1c"
# Far more than a million members' names; a header that claims more is not worth reading to prove anything.
MAX_HEADER = 256 * 1024 * 1024
MAX_NAMED = 1_000


class BadSevenZipError(Exception):
    """The bytes are no 7z archive, or contradict themselves."""


@dataclass(frozen=True, slots=True)
class StartHeader:
    """Where the real header lies, and its checksum."""

    offset: int
    size: int
    crc: int

    @property
    def end(self) -> int:
        return self.offset + self.size


def start_header(file: RangeFile) -> StartHeader:
    """Read the fixed beginning of the archive."""
    raw = file.read_at(0, START.size)
    if len(raw) < START.size or not raw.startswith(MAGIC):
        raise BadSevenZipError("there is no 7z signature")
    _, _, crc, offset, size, header_crc = START.unpack(raw)
    if zlib.crc32(raw[12:]) != crc:
        raise BadSevenZipError("the start header does not match its checksum")
    return StartHeader(START.size + offset, size, header_crc)


def header_holds(file: RangeFile, header: StartHeader) -> bool:
    """Whether the bytes at the archive's end are the ones that its beginning promises."""
    if header.size > MAX_HEADER or header.end > file.size:
        return False
    crc, position = 0, header.offset
    while position < header.end:
        piece = file.read_at(position, min(1024 * 1024, header.end - position))
        crc = zlib.crc32(piece, crc)
        position += len(piece)
    return crc == header.crc


def prove_sevenzip(parts: Parts, scheme: Scheme, indices: Sequence[int]) -> str:
    """Compare the end that the start header promises with what is there."""
    file = parts.joined()
    try:
        header = start_header(file)
    except BadSevenZipError as error:
        if scheme is Scheme.SINGLE:
            return str(error)
        raise NotWholeError(str(error)) from error
    if scheme is Scheme.SINGLE:
        return ""
    if header.end > file.size:
        absent = -(-(header.end - file.size) // max(1, parts.sizes[0]))
        following = max(indices) + 1
        missing = tuple(range(following, following + min(absent, MAX_NAMED)))
        raise NotWholeError(f"{header.end - file.size} bytes are missing", missing)
    if header.end < file.size:
        raise NotWholeError("the parts hold more than the archive")
    if len(set(parts.sizes[:-1])) > 1:
        raise NotWholeError("the parts before the last are not all of one size")
    if not header_holds(file, header):
        raise NotWholeError("the end of the last part is not this archive's")
    return ""
