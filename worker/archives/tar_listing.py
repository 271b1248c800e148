"""Members of a tar archive and of its compressed forms, read once from front to back."""

from __future__ import annotations

import datetime
import tarfile
from typing import IO, TYPE_CHECKING, cast

from worker.archives.sniff import looks_like_tar
from worker.archives.tar_check import BLOCK, TarCheck
from worker.archives.tar_streams import describe_stream, unpacked, wants_too_much
from worker.domain.archive_name import ArchiveFormat
from worker.domain.listing import Entry, Mark, Unchecked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker.archives.sink import Sink
    from worker.archives.source import Parts, RangeFile
    from worker.archives.whole import Budget

PIECE = 1024 * 1024


class BadTarError(Exception):
    """The bytes are no tar archive, or break off."""


def list_tar(parts: Parts, form: ArchiveFormat, sink: Sink) -> Callable[[Budget], None]:
    """Send every member to the sink. A tar is checked as it is read, so nothing remains to be done."""
    file = parts.joined()
    try:
        _list(file, form, sink)
    except Exception as error:
        if not wants_too_much(error):
            raise
        sink.mark(Mark.UNSUPPORTED, "unpacking it takes more memory than is allowed")
        sink.leave(Unchecked.METHOD, 0, file.size)
    return lambda _: None


def _list(file: RangeFile, form: ArchiveFormat, sink: Sink) -> None:
    checksummed = describe_stream(file, form, sink)
    with unpacked(file, form) as stream:
        if not looks_like_tar(stream.read(BLOCK)):
            sink.mark(Mark.MISNAMED, "there is no tar archive inside")
            return
        check = TarCheck(sink, plain=form is ArchiveFormat.TAR)
        for member in members(stream, check):
            sink.add(_entry(member))
            if member.issym() or member.islnk():
                sink.mark(Mark.LINKS)
        # What is compressed is read to its end, where its checksum is.
        while form is not ArchiveFormat.TAR and stream.read(PIECE):
            continue
    if form is ArchiveFormat.TAR:
        check.judge_end(file)
    elif not checksummed:
        sink.leave(Unchecked.NAMES if check.extended else Unchecked.FORMAT, 0, file.size)


class Recorder:
    """A stream that remembers what was read since it was last asked, so that nothing is read twice."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.taken: list[bytes] = []

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.taken.append(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


def members(stream: IO[bytes], check: TarCheck | None = None) -> Iterator[tarfile.TarInfo]:
    """Every member up to the end blocks; :class:`BadTarError` where the chain of headers breaks."""
    stream.seek(0)
    recorder = Recorder(stream)
    # The constructor reads the first header; each further one is read by hand, since iterating over a TarFile
    # takes a broken header for the end of the archive and keeps every member in memory.
    archive = tarfile.TarFile(fileobj=cast("IO[bytes]", recorder), mode="r", errorlevel=2)
    archive.offset = 0
    while True:
        start = archive.offset
        stream.seek(start)
        recorder.taken.clear()
        try:
            member = tarfile.TarInfo.fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed leaves out the reason for the end
            break
        except tarfile.HeaderError as error:
            raise BadTarError(f"a header is damaged or missing: {error}") from error
        if archive.offset <= start:
            raise BadTarError("a header points back at itself")
        if check is not None:
            check.headers(start, recorder.taken, member)
            padding = -_stored(member) % BLOCK if archive.offset > member.offset_data else 0
            stream.seek(archive.offset - padding)
            check.contents(member.offset_data, archive.offset - padding, stream.read(padding))
        yield member
    stream.seek(start)
    if stream.read(2 * BLOCK) != bytes(2 * BLOCK):
        raise BadTarError("the archive breaks off without its end blocks")
    if check is not None:
        check.end = start + 2 * BLOCK


def _stored(member: tarfile.TarInfo) -> int:
    """How many bytes of contents the archive holds: of a file with holes, only what lies between them."""
    if not member.issparse():
        return member.size
    return sum(length for _, length in cast("list[tuple[int, int]]", member.sparse))


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
