"""Members of a 7z archive, in one file or in slices."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from worker.archives.sevenzip_contents import Folder, UnreadableError, folder_holds, folders, is_encrypted
from worker.archives.sevenzip_library import PasswordRequired, SevenZipFile, UnsupportedCompressionMethodError
from worker.archives.sevenzip_start import START, BadSevenZipError, StartHeader, header_holds, start_header
from worker.domain.listing import Entry, Mark, Unchecked

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.archives.sink import Sink
    from worker.archives.source import Parts, RangeFile
    from worker.archives.whole import Budget

FILETIME_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)


def list_sevenzip(parts: Parts, sink: Sink) -> Callable[[Budget], None]:
    """Send every member to the sink; what is returned checks the contents."""
    file = parts.joined()
    header = start_header(file)
    if header.end < file.size:
        sink.mark(Mark.CORRUPT, f"{file.size - header.end} bytes follow the archive")
    if header.size == 0:
        return lambda _: None  # an archive of nothing has no header at all
    if not header_holds(file, header):
        raise BadSevenZipError("the header is cut off or does not match its checksum")
    try:
        archive = SevenZipFile(file)
    except PasswordRequired:
        sink.mark(Mark.ENCRYPTED)
        sink.mark(Mark.ENCRYPTED_NAMES, "the listing itself is encrypted")
        return lambda _: sink.leave(Unchecked.ENCRYPTED, START.size, header.offset - START.size)
    except UnsupportedCompressionMethodError as error:
        sink.mark(Mark.UNSUPPORTED, f"the header is packed in a way that is not read: {error}")
        return lambda _: sink.leave(Unchecked.METHOD, START.size, header.offset - START.size)
    for member in archive.files:
        sink.add(_entry(member))
        if member.is_symlink or member.is_junction:
            sink.mark(Mark.LINKS)
    return lambda budget: _check(file, header, archive, sink, budget)


def _entry(member: Any) -> Entry:
    is_dir = bool(member.is_directory)
    name = member.filename
    path = f"{name.rstrip('/')}/" if is_dir else name
    return Entry(
        path, member.uncompressed or 0, member.compressed, member.crc32, _moment(member.lastwritetime),
        is_dir, is_encrypted(member.folder),
    )  # fmt: skip


def _moment(filetime: int | None) -> str | None:
    if not filetime:
        return None
    try:
        moment = FILETIME_EPOCH + datetime.timedelta(microseconds=int(filetime) // 10)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _check(file: RangeFile, header: StartHeader, archive: Any, sink: Sink, budget: Budget) -> None:
    """Unpack into nothing and compare checksums. A packed header was checked when it was opened."""
    reached = START.size
    for folder in folders(archive):
        if folder.position + folder.length > header.offset:
            sink.mark(Mark.CORRUPT, "packed contents reach into the header")
            return
        _check_folder(file, folder, sink, budget)
        reached = folder.position + folder.length
    sink.leave(Unchecked.STRAY, reached, header.offset - archive.header.size - reached)


def _check_folder(file: RangeFile, folder: Folder, sink: Sink, budget: Budget) -> None:
    if folder.encrypted:
        sink.leave(Unchecked.ENCRYPTED, folder.position, folder.length)
        return
    if not budget.take(folder.length + folder.size):
        sink.leave(Unchecked.BOUND, folder.position, folder.length)
        return
    if any(checksum is None for size, checksum in folder.checks if size):
        sink.leave(Unchecked.FORMAT, folder.position, folder.length)
    try:
        holds = folder_holds(file, folder, budget)
    except (UnreadableError, MemoryError):
        sink.leave(Unchecked.METHOD, folder.position, folder.length)
        return
    except Exception as error:  # noqa: BLE001  # the decoders raise whatever damaged data makes them raise
        sink.mark(Mark.CORRUPT, f"a member cannot be unpacked: {type(error).__name__}")
        return
    if holds is None:
        sink.leave(Unchecked.BOUND, folder.position, folder.length)
    elif not holds:
        sink.mark(Mark.CORRUPT, "a member does not match its checksum")
