"""Blocks of the RAR5 format: variable-length numbers, CRC-32 on each header."""

from __future__ import annotations

import datetime
import zlib
from typing import TYPE_CHECKING

from worker.archives.rar_blocks import BadRarError, Block, Kind
from worker.domain.listing import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import RangeFile

MAX_HEADER = 2 * 1024 * 1024
MAIN, FILE, SERVICE, ENCRYPTION, END = 1, 2, 3, 4, 5
HAS_EXTRA, HAS_DATA, SPLIT_BEFORE, SPLIT_AFTER = 1, 2, 8, 16
IS_DIR, HAS_TIME, HAS_CRC, SIZE_UNKNOWN = 1, 2, 4, 8
SOLID, ALGORITHM = 0x40, 0x3F
EXTRA_ENCRYPTION, EXTRA_TIME, EXTRA_VERSION, EXTRA_LINK = 1, 3, 4, 5
UNIX_EPOCH_IN_FILETIME = 11_644_473_600


class _Cursor:
    """Reads values one after another; running out of bytes is an error of the archive."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            if self.at >= len(self.data):
                raise BadRarError("a header ends within a number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
        raise BadRarError("a number in a header has no end")

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise BadRarError("a header ends within a value")
        self.at += length
        return self.data[self.at - length : self.at]

    def word(self) -> int:
        return int.from_bytes(self.take(4), "little")


def blocks5(file: RangeFile, position: int) -> Iterator[Block]:
    """The blocks from ``position`` to the end block."""
    while True:
        cursor, header_end = _header(file, position)
        kind, flags = cursor.number(), cursor.number()
        extra_size = cursor.number() if flags & HAS_EXTRA else 0
        data_size = cursor.number() if flags & HAS_DATA else 0
        if header_end + data_size > file.size:
            raise BadRarError("a block reaches beyond the end of the file")
        block = _block(kind, flags, cursor, extra_size, header_end, data_size)
        yield block
        if block.kind in (Kind.END, Kind.ENCRYPTION):
            return
        position = block.next_offset


def _header(file: RangeFile, position: int) -> tuple[_Cursor, int]:
    start = file.read_at(position, 7)
    if len(start) < 7:
        raise BadRarError("the archive ends without an end block")
    cursor = _Cursor(start, 4)
    size = cursor.number()
    if not 0 < size <= MAX_HEADER:
        raise BadRarError("a header has an impossible size")
    data = file.read_at(position, cursor.at + size)
    if len(data) < cursor.at + size:
        raise BadRarError("the archive ends within a header")
    if zlib.crc32(memoryview(data)[4:]) != int.from_bytes(data[:4], "little"):
        raise BadRarError("a header does not match its checksum")
    return _Cursor(data, cursor.at), position + len(data)


def _block(kind: int, flags: int, cursor: _Cursor, extra_size: int, offset: int, data_size: int) -> Block:
    if kind == MAIN:
        archive_flags = cursor.number()
        number = cursor.number() if archive_flags & 2 else 0
        is_volume = bool(archive_flags & 1)
        return Block(
            Kind.MAIN, offset, data_size, is_volume=is_volume, is_first=number == 0,
            number=number if is_volume else None,
        )  # fmt: skip
    if kind == ENCRYPTION:
        cursor.number()
        cursor.number()
        cursor.take(1)
        return Block(Kind.ENCRYPTION, offset, data_size, headers_encrypted=True, salt=cursor.take(16))
    if kind == END:
        return Block(Kind.END, offset, data_size, more_volumes=bool(cursor.number() & 1))
    if kind in (FILE, SERVICE):
        return _file(kind, flags, cursor, extra_size, offset, data_size)
    return Block(Kind.OTHER, offset, data_size)


def _file(kind: int, flags: int, cursor: _Cursor, extra_size: int, offset: int, data_size: int) -> Block:
    file_flags, size = cursor.number(), cursor.number()
    cursor.number()  # attributes
    modified = _unix(cursor.word()) if file_flags & HAS_TIME else None
    crc = cursor.word() if file_flags & HAS_CRC else None
    packing, host = cursor.number(), cursor.number()
    path = cursor.take(cursor.number()).decode("utf-8", "replace")
    extra = _extra(cursor, extra_size)
    modified = _precise(extra.get(EXTRA_TIME, b"")) or modified
    is_dir = bool(file_flags & IS_DIR) and EXTRA_LINK not in extra
    path = f"{path.rstrip('/')}/" if is_dir else path
    size = 0 if file_flags & SIZE_UNKNOWN else size
    encrypted = EXTRA_ENCRYPTION in extra
    return Block(
        Kind.FILE if kind == FILE else Kind.SERVICE,
        offset,
        data_size,
        entry=Entry(path, size, data_size, crc, modified, is_dir, encrypted),
        split_before=bool(flags & SPLIT_BEFORE),
        split_after=bool(flags & SPLIT_AFTER),
        stored=(packing >> 7) & 7 == 0,
        solid=bool(packing & SOLID),
        current=packing & ALGORITHM == 0,
        is_link=EXTRA_LINK in extra,
        is_old_version=EXTRA_VERSION in extra,
        packing=b"%d %d" % (packing, host),
    )


def _extra(cursor: _Cursor, size: int) -> dict[int, bytes]:
    """Extra records by type. They end the header; a malformed tail is ignored as the format demands."""
    records: dict[int, bytes] = {}
    area = _Cursor(cursor.data[len(cursor.data) - size :]) if size else _Cursor(b"")
    while len(area.data) - area.at > 1:
        try:
            record = _Cursor(area.take(area.number()))
            kind = record.number()
            records[kind] = record.data[record.at :]
        except BadRarError:
            break
    return records


def _precise(record: bytes) -> str | None:
    if not record:
        return None
    cursor = _Cursor(record)
    flags = cursor.number()
    if not flags & 2:
        return None
    if flags & 1:
        return _unix(cursor.word())
    return _unix(int.from_bytes(cursor.take(8), "little") // 10_000_000 - UNIX_EPOCH_IN_FILETIME)


def _unix(seconds: int) -> str | None:
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
