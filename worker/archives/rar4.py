"""Blocks of the older RAR format (1.5 to 4.x): fixed fields, a 16-bit checksum on each header."""

from __future__ import annotations

import datetime
import struct
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from worker.archives.dos_time import dos_time
from worker.archives.rar_blocks import BadRarError, Block, Kind
from worker.domain.listing import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import RangeFile

HEAD = struct.Struct("<HBHH")
FILE_HEAD = struct.Struct("<LLBLHHBBHL")
MAIN, FILE, SUB, END = 0x73, 0x74, 0x7A, 0x7B
# Comments, signatures and recovery records of RAR 2: their checksums cover varying parts of them.
OLD_KINDS = range(0x75, 0x7A)
# Some cover names that follow the header.
OLD_REACH = 512
LONG_BLOCK = 0x8000
MAIN_VOLUME, MAIN_COMMENT, MAIN_PASSWORD, MAIN_FIRST = 0x1, 0x2, 0x80, 0x100
SPLIT_BEFORE, SPLIT_AFTER, PASSWORD, COMMENT, SOLID = 0x1, 0x2, 0x4, 0x8, 0x10
DIRECTORY, LARGE, UNICODE, SALT, VERSION, EXTENDED_TIME = 0xE0, 0x100, 0x200, 0x400, 0x800, 0x1000
END_MORE, END_CRC, END_NUMBER = 0x1, 0x2, 0x8
STORED = 0x30
# A recovery record: what stands where others have their checksum is none of its bytes.
RECOVERY = "RR"
UNIX = 3
# RAR 2.9 and later close every volume with an end block; members that need less may come from older tools.
ENDING_VERSION = 29


def blocks4(file: RangeFile, position: int) -> Iterator[Block]:
    """The blocks from ``position`` to the end block, or to the end of the file in volumes that have none."""
    newest, more, started = 0, False, False
    while position < file.size:
        kind, flags, header = _header(file, position)
        if not started and kind != MAIN:
            raise BadRarError("there is no main header")
        started = True
        header_end = position + len(header)
        data_size = int.from_bytes(header[7:11], "little") if flags & LONG_BLOCK and len(header) >= 11 else 0
        if kind in (FILE, SUB):
            newest = max(newest, header[24]) if len(header) > 24 else newest
            data_size |= int.from_bytes(header[32:36], "little") << 32 if flags & LARGE else 0
            more = bool(flags & SPLIT_AFTER)
        if header_end + data_size > file.size:
            raise BadRarError("a block reaches beyond the end of the file")
        block = _block(kind, flags, header, header_end, data_size)
        yield block
        if block.kind is Kind.END or block.headers_encrypted:
            return
        position = block.next_offset
    if newest == 0 or newest >= ENDING_VERSION:
        raise BadRarError("the archive ends without an end block")
    yield Block(Kind.END, position, 0, more_volumes=more, has_end_block=False)


def _header(file: RangeFile, position: int) -> tuple[int, int, bytes]:
    start = file.read_at(position, HEAD.size)
    if len(start) < HEAD.size:
        raise BadRarError("the archive ends within a header")
    crc, kind, flags, size = HEAD.unpack(start)
    if size < HEAD.size or not MAIN <= kind <= END:
        raise BadRarError("a header has an impossible size or type")
    header = file.read_at(position, size)
    if len(header) < size:
        raise BadRarError("the archive ends within a header")
    if kind in OLD_KINDS:
        holds = _any_beginning_matches(file.read_at(position, size + OLD_REACH), crc)
    else:
        holds = zlib.crc32(header[2 : _checked_end(kind, flags, header)]) & 0xFFFF == crc
    if not holds:
        raise BadRarError("a header does not match its checksum")
    return kind, flags, header


def _any_beginning_matches(header: bytes, crc: int) -> bool:
    """Without this a damaged type would turn a member into a comment, and nobody would miss it."""
    found = zlib.crc32(header[2 : HEAD.size])
    if found & 0xFFFF == crc:
        return True
    for at in range(HEAD.size, len(header)):
        found = zlib.crc32(header[at : at + 1], found)
        if found & 0xFFFF == crc:
            return True
    return False


def _checked_end(kind: int, flags: int, header: bytes) -> int:
    """Comments embedded in a header are outside its checksum."""
    if kind == MAIN and flags & MAIN_COMMENT:
        return 13
    if kind == FILE and flags & COMMENT and len(header) >= 32:
        end = 32 + int.from_bytes(header[26:28], "little")
        return end + (8 if flags & LARGE else 0) + (8 if flags & SALT else 0)
    return len(header)


def _block(kind: int, flags: int, header: bytes, offset: int, data_size: int) -> Block:
    if kind == MAIN:
        return Block(
            Kind.MAIN, offset, data_size, is_volume=bool(flags & MAIN_VOLUME),
            is_first=bool(flags & MAIN_FIRST), headers_encrypted=bool(flags & MAIN_PASSWORD),
        )  # fmt: skip
    if kind == END:
        at = 7 + (4 if flags & END_CRC else 0)
        number = int.from_bytes(header[at : at + 2], "little") if flags & END_NUMBER else None
        crc = int.from_bytes(header[7:11], "little") if flags & END_CRC else None
        return Block(Kind.END, offset, 0, more_volumes=bool(flags & END_MORE), number=number, crc_before=crc)
    if kind == FILE:
        return _file(Kind.FILE, flags, header, offset, data_size)
    if kind == SUB and len(header) >= 32:
        block = _file(Kind.SERVICE, flags, header, offset, data_size)
        if block.entry is not None and block.entry.path == RECOVERY:
            return replace(block, entry=block.entry._replace(crc32=None))
        return block
    return Block(Kind.OTHER, offset, data_size)


def _file(kind: Kind, flags: int, header: bytes, offset: int, data_size: int) -> Block:
    if len(header) < 32:
        raise BadRarError("a file header is too short")
    _, size, host, crc, time, date, version, method, name_length, attributes = FILE_HEAD.unpack_from(
        header, 7
    )
    at = 32
    if flags & LARGE:
        size |= int.from_bytes(header[36:40], "little") << 32
        at += 8
    path = file_name(header[at : at + name_length], is_unicode=bool(flags & UNICODE))
    salt = header[at + name_length : at + name_length + 8] if flags & SALT else b""
    at += name_length + len(salt)
    modified = dos_time(date, time)
    if (
        flags & EXTENDED_TIME
        and modified
        and int.from_bytes(header[at : at + 2], "little") >> 12 & 0xC == 0xC
    ):
        modified = _one_second_later(modified)
    is_dir = flags & DIRECTORY == DIRECTORY
    path = f"{path.rstrip('/')}/" if is_dir else path
    return Block(
        kind,
        offset,
        data_size,
        entry=Entry(path, 0 if is_dir else size, data_size, crc, modified, is_dir, bool(flags & PASSWORD)),
        split_before=bool(flags & SPLIT_BEFORE),
        split_after=bool(flags & SPLIT_AFTER),
        stored=method == STORED,
        solid=bool(flags & SOLID),
        current=version >= ENDING_VERSION,
        is_link=host == UNIX and attributes & 0o170000 == 0o120000,
        is_old_version=bool(flags & VERSION),
        packing=bytes((version, method, host)) + salt,
    )


def _one_second_later(modified: str) -> str | None:
    try:
        return (datetime.datetime.fromisoformat(modified) + datetime.timedelta(seconds=1)).isoformat()
    except (ValueError, OverflowError):
        return modified


def file_name(raw: bytes, *, is_unicode: bool) -> str:
    """A stored name: plain, UTF-8, or a plain name followed by the differences that make it Unicode."""
    plain, separator, packed = raw.partition(b"\0")
    if is_unicode and separator:
        name = _unpacked(plain, packed)
        if name:
            return name.replace("\\", "/")
    try:
        name = plain.decode()
    except UnicodeDecodeError:
        name = plain.decode("cp437")
    return name.replace("\\", "/")


def _unpacked(plain: bytes, packed: bytes) -> str | None:
    """Undo RAR's name packing: two bits choose how each character (or run) is made; None if it breaks off."""
    units: list[int] = []
    source = iter(packed)
    try:
        high = next(source) << 8
        while (choices := next(source, None)) is not None:
            for shift in (6, 4, 2, 0):
                first = next(source, None)
                if first is None:
                    break
                choice = (choices >> shift) & 3
                if choice == 0:
                    units.append(first)
                elif choice == 1:
                    units.append(first | high)
                elif choice == 2:
                    units.append(first | next(source) << 8)
                else:
                    add, top = (next(source), high) if first & 0x80 else (0, 0)
                    start = len(units)
                    run = plain[start : start + (first & 0x7F) + 2]
                    units.extend((byte + add & 0xFF) | top for byte in run)
    except StopIteration:
        return None
    return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "replace")
