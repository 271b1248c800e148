"""The end of a zip: records that say where its central directory is, also over several disks."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import Parts, RangeFile

END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")

END_MAGIC = b"PK\x05\x06"
END64_MAGIC = b"PK\x06\x06"
LOCATOR64_MAGIC = b"PK\x06\x07"
MAX_COMMENT = 0xFFFF
# The record's size field leaves out its magic and itself.
END64_UNCOUNTED = 12


class BadZipError(Exception):
    """The bytes are no zip, or contradict themselves."""


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the central directory says it is. Disks count from 0; offsets are relative to their disk."""

    disk: int
    directory_disk: int
    entries: int
    size: int
    offset: int
    end_position: int  # of the first end record, in the joined file
    comment_position: int
    trailing: int  # bytes after the comment; negative when the comment is cut short
    contradiction: str = ""  # between the end records themselves


@dataclass(frozen=True, slots=True)
class _End:
    """The end record that every zip has."""

    position: int
    disk: int
    directory_disk: int
    here: int
    entries: int
    size: int
    offset: int
    trailing: int


def find_directory(file: RangeFile, parts: Parts) -> Directory:
    """Read the end-of-central-directory records at the end of the joined file."""
    tail_size = min(file.size, MAX_COMMENT + END.size + LOCATOR64.size)
    tail_start = file.size - tail_size
    tail = file.read_at(tail_start, tail_size)
    at = _find_end(tail)
    _, disk, directory_disk, here, entries, size, offset, comment = END.unpack_from(tail, at)
    trailing = len(tail) - (at + END.size + comment)
    end = _End(tail_start + at, disk, directory_disk, here, entries, size, offset, trailing)
    locator_at = at - LOCATOR64.size
    if locator_at >= 0 and tail[locator_at : locator_at + 4] == LOCATOR64_MAGIC:
        return _zip64(file, parts, end, tail[locator_at:at])
    contradiction = ""
    if (disk == directory_disk and here != entries) or directory_disk > disk:
        contradiction = "the end record contradicts itself"
    return Directory(
        disk, directory_disk, entries, size, offset, end.position, end.position + END.size, trailing,
        contradiction,
    )  # fmt: skip


def _find_end(tail: bytes) -> int:
    """The record whose comment ends with the file; else the last one that is there at all."""
    fallback = -1
    at = len(tail)
    while (at := tail.rfind(END_MAGIC, 0, at)) >= 0:
        if at + END.size > len(tail):
            continue
        comment = END.unpack_from(tail, at)[-1]
        if at + END.size + comment == len(tail):
            return at
        fallback = max(fallback, at)
    if fallback < 0:
        raise BadZipError("there is no end-of-central-directory record")
    return fallback


def _zip64(file: RangeFile, parts: Parts, end: _End, locator: bytes) -> Directory:
    _, disk, offset, disks = LOCATOR64.unpack(locator)
    locator_position = end.position - LOCATOR64.size
    claimed = parts.start_of(disk) + offset if disk < len(parts) else offset
    # Bytes put before or taken from the front move everything: the record then still ends at its locator.
    for position in (claimed, locator_position - END64.size):
        if position < 0:
            continue
        raw = file.read_at(position, END64.size)
        if len(raw) == END64.size and raw.startswith(END64_MAGIC):
            _, length, _, _, this, first, here, entries, size, start = END64.unpack(raw)
            wrong = any(_contradictions(end, this, first, here, entries, size, start))
            wrong = wrong or position + END64_UNCOUNTED + length != locator_position
            wrong = wrong or disk > this or disks not in (this + 1, 0)
            contradiction = "the end records contradict each other" if wrong else ""
            return Directory(
                this, first, entries, size, start, position, end.position + END.size, end.trailing,
                contradiction,
            )  # fmt: skip
    raise BadZipError("the zip64 end record is not where its locator says")


def _contradictions(
    end: _End, this: int, first: int, here: int, entries: int, size: int, start: int
) -> Iterator[bool]:
    """A value of the older record is the newer one's, or all ones where it would not fit."""
    yield end.disk not in (this, 0xFFFF)
    yield end.directory_disk not in (first, 0xFFFF)
    yield end.here not in (here, 0xFFFF)
    yield end.entries not in (entries, 0xFFFF)
    yield end.size not in (size, 0xFFFFFFFF)
    yield end.offset not in (start, 0xFFFFFFFF)
    yield this == first and here != entries
    yield first > this


def directory_start(directory: Directory, parts: Parts) -> tuple[int, int]:
    """Where the directory really begins in the joined file, and how far that is from where it says."""
    actual = directory.end_position - directory.size
    if directory.disk > 0:
        if directory.directory_disk >= len(parts):
            raise BadZipError(f"the directory is on disk {directory.directory_disk + 1} of {len(parts)}")
        actual = parts.start_of(directory.directory_disk) + directory.offset
        return actual, 0
    if actual < 0:
        raise BadZipError("the central directory is larger than the file")
    return actual, actual - directory.offset
