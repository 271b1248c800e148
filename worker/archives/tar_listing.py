"""Members of a tar archive and of its compressed forms, read once from front to back."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
import tarfile
from typing import IO, TYPE_CHECKING, cast

from worker.archives.sniff import looks_like_tar
from worker.domain.archive_name import ArchiveFormat
from worker.domain.listing import Entry, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.sink import Sink
    from worker.archives.source import Parts, RangeFile

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14 and later
except ImportError:
    from backports import zstd

BLOCK = 512
PIECE = 1024 * 1024


class BadTarError(Exception):
    """The bytes are no tar archive, or break off."""


def list_tar(parts: Parts, form: ArchiveFormat, sink: Sink) -> None:
    """Send every member to the sink."""
    file = parts.joined()
    with unpacked(file, form) as stream:
        if not looks_like_tar(stream.read(BLOCK)):
            sink.mark(Mark.MISNAMED, "there is no tar archive inside")
            return
        for member in members(stream):
            sink.add(_entry(member))
            if member.issym() or member.islnk():
                sink.mark(Mark.LINKS)
        # What is compressed is read to its end, where its checksum is.
        while form is not ArchiveFormat.TAR and stream.read(PIECE):
            continue
    if form is ArchiveFormat.TAR and file.size % BLOCK:
        sink.mark(Mark.CORRUPT, "the archive does not end at a block boundary")


def unpacked(file: RangeFile, form: ArchiveFormat) -> IO[bytes]:
    """The tar itself, whatever it is compressed with."""
    if form is ArchiveFormat.TAR_GZ:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb"))
    if form is ArchiveFormat.TAR_BZ2:
        return cast("IO[bytes]", bz2.BZ2File(file))
    if form is ArchiveFormat.TAR_XZ:
        return cast("IO[bytes]", lzma.LZMAFile(cast("IO[bytes]", file)))
    if form is ArchiveFormat.TAR_ZST:
        return cast("IO[bytes]", zstd.ZstdFile(file))
    return cast("IO[bytes]", file)


def members(stream: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """Every member up to the end blocks; :class:`BadTarError` where the chain of headers breaks."""
    stream.seek(0)
    # The constructor reads the first header; each further one is read by hand, since iterating over a TarFile
    # takes a broken header for the end of the archive and keeps every member in memory.
    archive = tarfile.TarFile(fileobj=stream, mode="r", errorlevel=2)
    archive.offset = 0
    while True:
        start = archive.offset
        stream.seek(start)
        try:
            member = tarfile.TarInfo.fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed leaves out the reason for the end
            break
        except tarfile.HeaderError as error:
            raise BadTarError(f"a header is damaged or missing: {error}") from error
        if archive.offset <= start:
            raise BadTarError("a header points back at itself")
        yield member
    stream.seek(start)
    if stream.read(2 * BLOCK) != bytes(2 * BLOCK):
        raise BadTarError("the archive breaks off without its end blocks")


def _entry(member: tarfile.TarInfo) -> Entry:
    path = f"{member.name.rstrip('/')}/" if member.isdir() else member.name
    size = member.size if member.isreg() else 0
    return Entry(path, size, None, None, _moment(member.mtime), member.isdir(), encrypted=False)


def _moment(seconds: float) -> str | None:
    try:
        moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
