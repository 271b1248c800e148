"""Members of a zip, plain or over several disks, and whether the bytes bear the directory out."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from worker.archives.dos_time import dos_time
from worker.archives.zip_directory import (
    LOCAL,
    LOCAL_MAGIC,
    BadZipError,
    Record,
    directory_start,
    extra_field,
    find_directory,
    records,
)
from worker.domain.listing import Entry, Mark

if TYPE_CHECKING:
    from worker.archives.sink import Sink
    from worker.archives.source import Parts, RangeFile
    from worker.domain.listing import Limits

ENCRYPTED, STREAMED, UTF8, MASKED = 0x1, 0x8, 0x800, 0x2000
UNICODE_PATH = b"up"
# Other flags are set by honest tools in one place and not in the other.
COMPARED = ENCRYPTED | STREAMED | UTF8
UNIX, MACOS = 3, 19
STORED, DEFLATED = 0, 8
# So many local headers are compared with the directory. Above, a listing must not cost a read per member.
CHECKED_MEMBERS = 5_000
PIECE = 256 * 1024


def list_zip(parts: Parts, sink: Sink, limits: Limits) -> None:
    """Send every member to the sink."""
    file = parts.joined()
    directory = find_directory(file, parts)
    start, shift = directory_start(directory, parts)
    if shift < 0:
        sink.mark(Mark.CORRUPT, f"{-shift} bytes are missing before the central directory")
    if directory.trailing:
        sink.mark(Mark.CORRUPT, "the end record does not end the file")
    kept: list[Record] = []
    try:
        for record in records(file, start, directory):
            if sink.full:
                sink.skip(record[9], record[8])
                continue
            sink.add(record_entry(record))
            if record[2] == UNIX and (record[11] >> 16) & 0o170000 == 0o120000:
                sink.mark(Mark.LINKS)
            if sink.count <= CHECKED_MEMBERS + 1:
                kept.append(record)
    except BadZipError as error:
        sink.mark(Mark.CORRUPT, str(error))
    # Zip tools without zip64 count modulo 65,536.
    if sink.count != directory.entries and sink.count & 0xFFFF != directory.entries:
        sink.mark(Mark.CORRUPT, f"the end record counts {directory.entries} members, there are {sink.count}")
    if shift >= 0 and limits.verify_bytes and len(kept) <= CHECKED_MEMBERS:
        _verify(file, parts, kept, shift, sink, limits.verify_bytes)


def record_entry(record: Record) -> Entry:
    """A directory record as a member."""
    raw, flags = record[0], record[3]
    plain = raw.isascii() and UNICODE_PATH not in record[1]
    path = raw.decode("ascii") if plain else _name(record)
    modified = dos_time(record[6], record[5])
    is_dir, encrypted = path.endswith("/"), bool(flags & ENCRYPTED)
    return Entry._make((path, record[9], record[8], record[7], modified, is_dir, encrypted))


def _name(record: Record) -> str:
    """The name in the first encoding that fits; cp437, the format's default, fits any bytes."""
    raw = record.name
    unicode_path = extra_field(record.extra, int.from_bytes(UNICODE_PATH, "little"))
    if len(unicode_path) > 5 and int.from_bytes(unicode_path[1:5], "little") == zlib.crc32(raw):
        raw = unicode_path[5:]
    # Unix and macOS tools store names as their file system has them, often without saying so.
    elif not record.flags & UTF8 and record.made_on not in (UNIX, MACOS):
        return raw.decode("cp437")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return record.name.decode("cp437")


def _verify(file: RangeFile, parts: Parts, kept: list[Record], shift: int, sink: Sink, budget: int) -> None:
    """Compare each local header with its record, and contents with their checksum while the budget lasts."""
    for record in kept:
        if record.disk >= len(parts):
            sink.mark(Mark.CORRUPT, f"a member lies on disk {record.disk + 1} of {len(parts)}")
            continue
        data = data_start(file, record, position_of(record, parts, shift))
        if data is None:
            sink.mark(Mark.CORRUPT, "a local header contradicts the central directory")
            continue
        if record.flags & (ENCRYPTED | MASKED) or record.method not in (STORED, DEFLATED):
            continue
        budget -= record.packed + record.size
        if budget >= 0 and not _checksum_holds(file, record, data):
            sink.mark(Mark.CORRUPT, "a member does not match its checksum")


def position_of(record: Record, parts: Parts, shift: int) -> int:
    """Where the member's local header is in the joined file."""
    return record.offset + shift + (parts.start_of(record.disk) if len(parts) > 1 else 0)


def data_start(file: RangeFile, record: Record, position: int) -> int | None:
    """Where the member's bytes begin; None if its local header contradicts the directory."""
    head = file.read_at(position, LOCAL.size)
    if len(head) < LOCAL.size:
        return None
    magic, _, flags, method, time, date, crc, packed, size, name_length, extra_length = LOCAL.unpack(head)
    if magic != LOCAL_MAGIC or file.read_at(position + LOCAL.size, name_length) != record.name:
        return None
    if (flags ^ record.flags) & COMPARED or (method, time, date) != (record.method, record.time, record.date):
        return None
    if not flags & STREAMED and not flags & MASKED:
        narrow = (crc, packed, size) == (record.crc, record.packed, record.size)
        if not narrow and 0xFFFFFFFF not in (packed, size):
            return None
    return position + LOCAL.size + int(name_length) + int(extra_length)


def _checksum_holds(file: RangeFile, record: Record, start: int) -> bool:
    if start + record.packed > file.size:
        return False
    inflater = zlib.decompressobj(-15) if record.method == DEFLATED else None
    crc, size, position, left = 0, 0, start, record.packed
    try:
        while left > 0 and size <= record.size:
            piece = file.read_at(position, min(PIECE, left))
            position += len(piece)
            left -= len(piece)
            if inflater is not None:
                piece = inflater.decompress(piece, record.size - size + 1)
            crc = zlib.crc32(piece, crc)
            size += len(piece)
    except zlib.error:
        return False
    if inflater is not None and (not inflater.eof or inflater.unused_data):
        return False
    return size == record.size and crc == record.crc
