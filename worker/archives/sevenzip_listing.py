"""Members of a 7z archive, in one file or in slices."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import py7zr
from py7zr.exceptions import PasswordRequired, UnsupportedCompressionMethodError
from py7zr.io import NullIOFactory

from worker.archives.sevenzip_proof import BadSevenZipError, header_holds, start_header
from worker.domain.listing import Entry, Mark

if TYPE_CHECKING:
    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.domain.listing import Limits

AES = b"\x06\xf1\x07\x01"
# Copy, LZMA, LZMA2, Delta, BZip2, Deflate, x86 branches. Left out are decoders that damaged data makes
# overrun memory, as PPMd's does: a crash would cost the listing.
STURDY = {
    bytes.fromhex(method) for method in ("00", "030101", "21", "03", "040202", "040108", "03030103")
}  # fmt: skip
FILETIME_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)


def list_sevenzip(parts: Parts, sink: Sink, limits: Limits) -> None:
    """Send every member to the sink."""
    file = parts.joined()
    header = start_header(file)
    if header.size == 0:
        return  # an archive of nothing has no header at all
    if not header_holds(file, header):
        raise BadSevenZipError("the header is cut off or does not match its checksum")
    if header.end < file.size:
        sink.mark(Mark.CORRUPT, f"{file.size - header.end} bytes follow the archive")
    try:
        archive = py7zr.SevenZipFile(file)
    except PasswordRequired:
        sink.mark(Mark.ENCRYPTED)
        sink.mark(Mark.ENCRYPTED_NAMES, "the listing itself is encrypted")
        return
    except UnsupportedCompressionMethodError as error:
        sink.mark(Mark.UNSUPPORTED, f"the header is packed in a way that is not read: {error}")
        return
    for member in archive.files:
        sink.add(_entry(member))
        if member.is_symlink or member.is_junction:
            sink.mark(Mark.LINKS)
    _verify(archive, sink, limits)


def _entry(member: Any) -> Entry:
    is_dir = bool(member.is_directory)
    name = member.filename
    path = f"{name.rstrip('/')}/" if is_dir else name
    return Entry(
        path, member.uncompressed or 0, member.compressed, member.crc32, _moment(member.lastwritetime),
        is_dir, is_encrypted(member.folder),
    )  # fmt: skip


def is_encrypted(folder: Any) -> bool:
    """Whether the members that are packed together in this folder need a password."""
    return folder is not None and any(coder["method"] == AES for coder in folder.coders)


def is_readable(folder: Any) -> bool:
    """Whether the folder's members can be unpacked here without risking the process."""
    return folder is None or all(coder["method"] in STURDY for coder in folder.coders)


def _moment(filetime: int | None) -> str | None:
    if not filetime:
        return None
    try:
        moment = FILETIME_EPOCH + datetime.timedelta(microseconds=int(filetime) // 10)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _verify(archive: Any, sink: Sink, limits: Limits) -> None:
    """Unpack into nothing and compare checksums, where that is cheap."""
    if not 0 < sink.total_size <= limits.verify_bytes or Mark.ENCRYPTED in sink.marks:
        return
    if not all(is_readable(member.folder) for member in archive.files):
        return
    sink.flush()
    try:
        archive.reset()
        archive.extractall(factory=NullIOFactory())
    except (UnsupportedCompressionMethodError, PasswordRequired, MemoryError):
        return  # what cannot be unpacked here may be sound all the same
    except Exception as error:  # noqa: BLE001  # the decoders raise whatever damaged data makes them raise
        sink.mark(Mark.CORRUPT, f"a member cannot be unpacked: {type(error).__name__}")
