"""One member of a zip where it lies: its local header, its bytes, its data descriptor."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.archives.unpacking import (
    MAKERS,
    BadStreamError,
    lzma_of_known_size,
    stored_pieces,
    unpacked_pieces,
)
from worker.archives.zip_directory import LOCAL, LOCAL_MAGIC, Record, extra_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import Parts, RangeFile

ENCRYPTED, LEVEL, STREAMED, MASKED, UTF8 = 0x1, 0x6, 0x8, 0x2000, 0x800
STORED, DEFLATED, LZMA = 0, 8, 14
LZMA_HEADER = 9
ZIP64, AES = 0x0001, 0x9901
DESCRIPTOR_MAGIC = b"PK\x07\x08"
# Two fields that honest tools write into both headers, the shorter being the beginning of the longer: times,
# owners, Unicode names and comments, encryption.
MIRRORED = {0x5455, 0x7875, 0x7855, 0x000A, 0x7075, 0x6375, AES}
# What stored and deflated members can need at most; later versions are for other methods.
PLAIN_VERSION = 45


@dataclass(frozen=True, slots=True)
class Member:
    """A member whose local header bears the directory out."""

    record: Record
    position: int
    data: int
    extra: bytes
    redated: bool  # the two headers name two moments

    @property
    def data_end(self) -> int:
        return self.data + self.record.packed

    @property
    def readable(self) -> bool:
        """Whether the contents can be unpacked here."""
        record = self.record
        known = record.method in (STORED, LZMA) or record.method in MAKERS
        return known and not record.flags & (ENCRYPTED | MASKED)


def position_of(record: Record, parts: Parts, shift: int) -> int:
    """Where the member's local header is in the joined file."""
    return record.offset + shift + (parts.start_of(record.disk) if len(parts) > 1 else 0)


def member_at(file: RangeFile, record: Record, position: int) -> Member | None:
    """The member; None if its local header contradicts the directory."""
    head = file.read_at(position, LOCAL.size)
    if len(head) < LOCAL.size:
        return None
    magic, needed, flags, method, time, date, crc, packed, size, name_length, extra_length = LOCAL.unpack(
        head
    )
    # Some tools write two moments, and no tool minds; but two that are one bit apart were one.
    apart = (date << 16 | time) ^ (record.date << 16 | record.time)
    if magic != LOCAL_MAGIC or method != record.method or apart.bit_count() == 1:
        return None
    rest = file.read_at(position + LOCAL.size, name_length + extra_length)
    name, extra = rest[:name_length], rest[name_length:]
    # How hard it tried to deflate a member is told by some tools in one place only.
    told_once = LEVEL if method == DEFLATED else 0
    if name != record.name or (flags ^ record.flags) & ~told_once or (needed ^ record.needed) >> 8:
        return None
    is_plain = method in (STORED, DEFLATED) and not flags & ENCRYPTED
    if is_plain and max(needed & 0xFF, record.needed & 0xFF) > PLAIN_VERSION:
        return None
    if not _sizes_agree(record, crc, packed, size, extra) or not _extras_agree(record.extra, extra):
        return None
    return Member(record, position, position + LOCAL.size + len(rest), extra, redated=apart != 0)


def _sizes_agree(record: Record, crc: int, packed: int, size: int, extra: bytes) -> bool:
    stated = (record.crc, record.packed, record.size)
    if record.flags & MASKED or (crc, packed, size) == stated:
        return True
    wide = (extra_fields(extra) or {}).get(ZIP64, b"")
    wide_size = int.from_bytes(wide[:8], "little")
    wide_packed = int.from_bytes(wide[8:16], "little")
    # Who packs a file into a pipe knows how long it is, and nothing else yet.
    untold = ((0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0, record.size))
    if record.flags & STREAMED and crc == 0 and (packed, size) in untold:
        return not wide or (wide_packed, wide_size) in ((0, 0), stated[1:])
    if len(wide) < 16 or crc != record.crc or 0xFFFFFFFF not in (packed, size):
        return False
    real = (
        wide_packed if packed == 0xFFFFFFFF else packed,
        wide_size if size == 0xFFFFFFFF else size,
    )
    return real == stated[1:]


def _extras_agree(central: bytes, local: bytes) -> bool:
    """Whether the fields of both headers are well-formed, and alike where both must be."""
    ours, theirs = extra_fields(central), extra_fields(local)
    if ours is None or theirs is None:
        return False
    for kind in MIRRORED & ours.keys() & theirs.keys():
        if not theirs[kind].startswith(ours[kind]) and not ours[kind].startswith(theirs[kind]):
            return False
    return True


def contents(file: RangeFile, member: Member) -> Iterator[bytes]:
    """The member's plain bytes; :class:`BadStreamError` where they cannot be unpacked."""
    record = member.record
    packed = stored_pieces(file, member.data, record.packed)
    if record.method == STORED:
        return packed
    if record.method != LZMA:
        return unpacked_pieces(MAKERS[record.method](), packed)
    return _unlzma(file, member)


def _unlzma(file: RangeFile, member: Member) -> Iterator[bytes]:
    record = member.record
    head = file.read_at(member.data, 4)
    length = int.from_bytes(head[2:4], "little")
    if len(head) < 4 or length != 5:
        raise BadStreamError("an LZMA member has no properties")
    properties = file.read_at(member.data + 4, length)
    has_end_mark = bool(record.flags & 0x2)
    decoder, header = lzma_of_known_size(properties, None if has_end_mark else record.size)
    skipped = 4 + length
    packed = stored_pieces(file, member.data + skipped, record.packed - skipped)
    yield from unpacked_pieces(decoder, _after(header, packed))


def _after(header: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield header
    yield from pieces


def checksum_holds(file: RangeFile, member: Member) -> bool:
    """Whether the contents are as long as they should be, and match their checksum."""
    record = member.record
    crc = size = 0
    try:
        for piece in contents(file, member):
            crc = zlib.crc32(piece, crc)
            size += len(piece)
            if size > record.size:
                return False
    except BadStreamError:
        return False
    return size == record.size and crc == record.crc


def end_of(file: RangeFile, member: Member) -> int | None:
    """Where the member ends, its data descriptor included; None if there should be one and is not."""
    record = member.record
    if not record.flags & STREAMED or record.flags & MASKED:
        return member.data_end
    raw = file.read_at(member.data_end, 24)
    for signature in (DESCRIPTOR_MAGIC, b""):
        for widths in ("<LLL", "<LQQ"):
            form = struct.Struct(widths)
            if not raw.startswith(signature) or len(raw) < len(signature) + form.size:
                continue
            if form.unpack_from(raw, len(signature)) == (record.crc, record.packed, record.size):
                return member.data_end + len(signature) + form.size
    # Tools that could seek back wrote the real sizes into the local header and left the flag set.
    local = file.read_at(member.position + 14, 12)
    if local == struct.pack("<3L", record.crc, record.packed & 0xFFFFFFFF, record.size & 0xFFFFFFFF):
        return member.data_end
    return None
