"""A zip's central directory: finding it, also over several disks, and reading its records.

``zipfile`` knows neither disk-relative offsets nor multi-disk zip64, and builds an object per member before
the first can be seen. This reader goes through a directory of any size in constant memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import Parts, RangeFile

END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")
RECORD = struct.Struct("<4s4B4H3L5H2L")
LOCAL = struct.Struct("<4s5H3L2H")

END_MAGIC = b"PK\x05\x06"
END64_MAGIC = b"PK\x06\x06"
LOCATOR64_MAGIC = b"PK\x06\x07"
RECORD_MAGIC = b"PK\x01\x02"
LOCAL_MAGIC = b"PK\x03\x04"
MAX_COMMENT = 0xFFFF
CHUNK = 1024 * 1024


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
    trailing: int  # bytes after the comment; negative when the comment is cut short


class Record(NamedTuple):
    """One central directory record, still as stored."""

    name: bytes
    extra: bytes
    made_on: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    packed: int
    size: int
    disk: int
    attributes: int
    offset: int


def find_directory(file: RangeFile, parts: Parts) -> Directory:
    """Read the end-of-central-directory records at the end of the joined file."""
    tail_size = min(file.size, MAX_COMMENT + END.size + LOCATOR64.size)
    tail_start = file.size - tail_size
    tail = file.read_at(tail_start, tail_size)
    at = _find_end(tail)
    fields = END.unpack_from(tail, at)
    _, disk, directory_disk, _, entries, size, offset, comment = fields
    trailing = len(tail) - (at + END.size + comment)
    position = tail_start + at
    locator_at = at - LOCATOR64.size
    if locator_at >= 0 and tail[locator_at : locator_at + 4] == LOCATOR64_MAGIC:
        _, disk64, offset64, _ = LOCATOR64.unpack_from(tail, locator_at)
        return _zip64(file, parts, disk64, offset64, position - LOCATOR64.size, trailing)
    return Directory(disk, directory_disk, entries, size, offset, position, trailing)


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


def _zip64(
    file: RangeFile, parts: Parts, disk: int, offset: int, locator_position: int, trailing: int
) -> Directory:
    claimed = parts.start_of(disk) + offset if disk < len(parts) else offset
    # Bytes put before or taken from the front move everything: the record then still ends at its locator.
    for position in (claimed, locator_position - END64.size):
        if position < 0:
            continue
        raw = file.read_at(position, END64.size)
        if len(raw) == END64.size and raw.startswith(END64_MAGIC):
            _, _, _, _, this, first, _, entries, size, start = END64.unpack(raw)
            return Directory(this, first, entries, size, start, position, trailing)
    raise BadZipError("the zip64 end record is not where its locator says")


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


def records(file: RangeFile, start: int, directory: Directory) -> Iterator[Record]:
    """Every record of the directory; raises :class:`BadZipError` at the first that cannot be one."""
    end = min(directory.end_position, file.size)
    position = start
    buffer, at = b"", 0
    unpack, head, make = RECORD.unpack_from, RECORD.size, Record._make
    while position < end:
        if len(buffer) - at < head:
            buffer, at = file.read_at(position, min(CHUNK, end - position)), 0
        if len(buffer) < head:
            raise BadZipError("the central directory ends within a record")
        (magic, _, made_on, _, _, flags, method, time, date, crc, packed, size, name_length, extra_length,
         comment_length, disk, _, attributes, offset) = unpack(buffer, at)  # fmt: skip
        if magic != RECORD_MAGIC:
            if buffer[at : at + 4] == b"PK\x05\x05":  # a digital signature may close the directory
                return
            raise BadZipError("the central directory has a record that is none")
        length = head + name_length + extra_length + comment_length
        if len(buffer) - at < length:
            buffer, at = file.read_at(position, min(max(CHUNK, length), end - position)), 0
            if len(buffer) < length:
                raise BadZipError("the central directory ends within a record")
        name_end = at + head + name_length
        extra = buffer[name_end : name_end + extra_length]
        if packed == 0xFFFFFFFF or size == 0xFFFFFFFF or offset == 0xFFFFFFFF or disk == 0xFFFF:
            packed, size, offset, disk = _wide(extra, packed, size, offset, disk)
        name = buffer[at + head : name_end]
        fields = (
            name,
            extra,
            made_on,
            flags,
            method,
            time,
            date,
            crc,
            packed,
            size,
            disk,
            attributes,
            offset,
        )
        yield make(fields)
        at += length
        position += length


def _wide(extra: bytes, packed: int, size: int, offset: int, disk: int) -> tuple[int, int, int, int]:
    """Replace the values that did not fit by those of the zip64 extra field, in its fixed order."""
    field = extra_field(extra, 0x0001)
    at = 0
    values = [size, packed, offset]
    for place, value in enumerate(values):
        if value == 0xFFFFFFFF:
            if len(field) < at + 8:
                raise BadZipError("a zip64 field is missing")
            values[place] = int.from_bytes(field[at : at + 8], "little")
            at += 8
    if disk == 0xFFFF and len(field) >= at + 4:
        disk = int.from_bytes(field[at : at + 4], "little")
    return values[1], values[0], values[2], disk


def extra_field(extra: bytes, wanted: int) -> bytes:
    """The body of one extra field, or nothing."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == wanted:
            return extra[at + 4 : at + 4 + length]
        at += 4 + length
    return b""
