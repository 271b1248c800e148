"""The first 32 bytes of a 7z archive, which say where its header lies and so where it must end."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.archives.source import RangeFile

START = struct.Struct("<6s2sLQQL")
MAGIC = b"7z\xbc\xaf\x27\x1c"
VERSIONS = (b"\0\2", b"\0\3", b"\0\4")
# Far more than a million members' names; a header that claims more is not worth reading to prove anything.
MAX_HEADER = 256 * 1024 * 1024


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
    _, version, crc, offset, size, header_crc = START.unpack(raw)
    if version not in VERSIONS:
        raise BadSevenZipError(f"there is no version {version[0]}.{version[1]} of 7z")
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
