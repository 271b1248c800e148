"""The records of a zip's central directory.

``zipfile`` knows neither disk-relative offsets nor multi-disk zip64, and builds an object per member before
the first can be seen. This reader goes through a directory of any size in constant memory.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from worker.archives.zip_end import BadZipError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import RangeFile
    from worker.archives.zip_end import Directory

RECORD = struct.Struct("<4s4B4H3L5H2L")
LOCAL = struct.Struct("<4s5H3L2H")

RECORD_MAGIC = b"PK\x01\x02"
LOCAL_MAGIC = b"PK\x03\x04"
CHUNK = 1024 * 1024


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
    needed: int
    comment: int

    @property
    def length(self) -> int:
        """How many bytes the record takes in the directory."""
        return RECORD.size + len(self.name) + len(self.extra) + self.comment


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
        (magic, _, made_on, needed, needs_system, flags, method, time, date, crc, packed, size, name_length,
         extra_length, comment_length, disk, _, attributes, offset) = unpack(buffer, at)  # fmt: skip
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
            needs_system << 8 | needed,
            comment_length,
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


def extra_fields(extra: bytes) -> dict[int, bytes] | None:
    """Every extra field by its kind; None if they do not fill their room. Zeros at the end are alignment."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(extra):
        if not any(extra[at:]):
            return found
        if at + 4 > len(extra):
            return None
        kind, length = struct.unpack_from("<2H", extra, at)
        if at + 4 + length > len(extra):
            return None
        found[kind] = extra[at + 4 : at + 4 + length]
        at += 4 + length
    return found
