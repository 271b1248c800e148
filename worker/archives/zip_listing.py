"""Members of a zip, plain or over several disks."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from worker.archives.dos_time import dos_time
from worker.archives.zip_check import ZipCheck
from worker.archives.zip_directory import Record, extra_field, records
from worker.archives.zip_end import BadZipError, directory_start, find_directory
from worker.archives.zip_member import ENCRYPTED
from worker.domain.listing import Entry, Mark, Unchecked

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.archives.whole import Budget
    from worker.archives.zip_end import Directory

UNICODE_PATH = b"up"
UNIX = 3
# So many local headers are compared with the directory. Above, a listing must not cost a read per member.
CHECKED_MEMBERS = 5_000


def list_zip(parts: Parts, sink: Sink) -> Callable[[Budget], None]:
    """Send every member to the sink; what is returned checks the contents."""
    file = parts.joined()
    directory = find_directory(file, parts)
    start, shift = directory_start(directory, parts)
    _compare_end(directory, start, shift, sink)
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
    if shift < 0 or len(kept) > CHECKED_MEMBERS:
        return lambda _: sink.leave(Unchecked.BOUND, 0, start)
    return ZipCheck(parts, directory, start, shift, kept, sink).run


def _compare_end(directory: Directory, start: int, shift: int, sink: Sink) -> None:
    """Mark what the end records say of the directory, and is not so."""
    if shift < 0:
        sink.mark(Mark.CORRUPT, f"{-shift} bytes are missing before the central directory")
    # What follows a zip that lies where it says is no part of it. Elsewhere, this may be the end of a zip
    # within the zip, whose own end is lost.
    cut = directory.trailing < 0 or (directory.trailing > 0 and shift != 0)
    if cut or directory.contradiction:
        sink.mark(Mark.CORRUPT, directory.contradiction or "the end record does not end the file")
    if start + directory.size != directory.end_position:
        sink.mark(Mark.CORRUPT, "the central directory has not the size that its end record states")


def record_entry(record: Record) -> Entry:
    """A directory record as a member."""
    raw, flags = record[0], record[3]
    plain = raw.isascii() and UNICODE_PATH not in record[1]
    path = raw.decode("ascii") if plain else _name(record)
    modified = dos_time(record[6], record[5])
    is_dir, encrypted = path.endswith("/"), bool(flags & ENCRYPTED)
    return Entry._make((path, record[9], record[8], record[7], modified, is_dir, encrypted))


def _name(record: Record) -> str:
    """The name as UTF-8 if it is that, whoever wrote it; else in cp437, the format's default, which fits all.

    What the record says about its encoding is not needed: text in another one is hardly ever valid UTF-8, and
    tools of every system have stored UTF-8 without saying so.
    """
    raw = record.name
    unicode_path = extra_field(record.extra, int.from_bytes(UNICODE_PATH, "little"))
    if len(unicode_path) > 5 and int.from_bytes(unicode_path[1:5], "little") == zlib.crc32(raw):
        raw = unicode_path[5:]
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return record.name.decode("cp437")
