"""Whether the headers of a tar agree with each other, and where there is nothing to compare.

Each header block carries a checksum. Extended headers (long names, pax records) put values beside it that
have none, but the plain header after them mostly repeats those values in short. Contents have no checksum.
"""

from __future__ import annotations

import re
import tarfile
from typing import TYPE_CHECKING

from worker.domain.listing import Mark, Unchecked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.archives.sink import Sink
    from worker.archives.source import RangeFile

BLOCK = 512
NAME = 100
TRAILER = 1024 * 1024
EXTENDED = {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE}
LONG = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
KEYWORDS = re.compile(
    rb"atime|charset|comment|ctime|gid|gname|hdrcharset|linkpath|mtime|path|size|uid|uname|[A-Za-z]+\.[^=]+"
)
RECORD = re.compile(rb"([0-9]{1,10}) ([^=]+)=")
CHECKSUM = re.compile(rb" *[0-7]+(?:\0 | \0|\0| |\0\0)?")


class TarCheck:
    """Watches the headers go by. ``end`` is where the end blocks end, once they were found."""

    def __init__(self, sink: Sink, *, plain: bool) -> None:
        self._sink = sink
        self._plain = plain
        self.extended = False
        self.end = 0

    def headers(self, start: int, taken: Sequence[bytes], member: tarfile.TarInfo) -> None:
        """Compare the blocks that were read for one member."""
        position = start
        kinds: list[bytes] = []
        stated: dict[bytes, bytes] = {}
        for chunk in taken:
            before = kinds[-1] if kinds else b""
            if before in EXTENDED | LONG:
                self._extension(before, position, chunk, stated)
                kinds.append(b"")
            elif before:
                # What is read behind a member's own header is the map of a file with holes.
                if self._plain:
                    self._sink.leave(Unchecked.FORMAT, position, len(chunk))
            else:
                kinds.append(chunk[156:157])
                if not CHECKSUM.fullmatch(chunk[148:156]):
                    self._wrong("a header's checksum is written as nobody writes it")
            position += len(chunk)
        last = taken[-1]
        if stated and len(last) == BLOCK and kinds[-1] != b"" and not member.issparse():
            self._compare(stated, last)

    def _extension(self, kind: bytes, position: int, data: bytes, stated: dict[bytes, bytes]) -> None:
        self.extended = True
        if self._plain:
            self._sink.leave(Unchecked.NAMES, position, len(data))
        if kind in EXTENDED:
            for keyword, value in self._records(data):
                if not KEYWORDS.fullmatch(keyword):
                    self._wrong("an extended header has a keyword that does not exist")
                if kind != tarfile.XGLTYPE:
                    stated[keyword] = value
        else:
            name, _, rest = data.partition(b"\0")
            if any(rest):
                self._wrong("bytes follow a long name")
            stated[b"path" if kind == tarfile.GNUTYPE_LONGNAME else b"linkpath"] = name

    def _records(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        at = 0
        while at < len(data) and data[at]:
            found = RECORD.match(data, at)
            end = at + int(found[1]) if found else at
            if found is None or end < found.end() + 1 or data[end - 1 : end] != b"\n":
                self._wrong("an extended header is damaged")
                return
            yield found[2], data[found.end() : end - 1]
            at = end
        if any(data[at:]):
            self._wrong("bytes follow an extended header")

    def _compare(self, stated: dict[bytes, bytes], header: bytes) -> None:
        try:
            plain = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            return  # told by whoever reads the members
        size, mtime = _number(stated.get(b"size")), _number(stated.get(b"mtime"))
        # Zero stands for a value that does not fit.
        if size is not None and plain.size not in (0, size):
            self._wrong("an extended header states another size than the header after it")
        if mtime is not None and plain.mtime and not -1 <= mtime - plain.mtime <= 1:
            self._wrong("an extended header states another time than the header after it")
        for keyword, name in ((b"path", plain.name), (b"linkpath", plain.linkname)):
            if keyword in stated and _misspelt(stated[keyword], name):
                self._wrong("an extended header states another name than the header after it")

    def contents(self, start: int, end: int, padding: bytes) -> None:
        """Take note of a member's contents and of the zeros that fill its last block."""
        if self._plain:
            self._sink.leave(Unchecked.FORMAT, start, end - start)
        if any(padding):
            self._wrong("the room after a member is not empty")

    def judge_end(self, file: RangeFile) -> None:
        """Look at what follows the end blocks: nothing, or zeros up to the end of a record."""
        after = file.size - self.end
        if any(file.read_at(self.end, min(after, TRAILER))):
            self._wrong("bytes follow the archive")
        self._sink.leave(Unchecked.STRAY, self.end + TRAILER, after - TRAILER)
        # How many blocks make a record is up to whoever writes, so any number of them may fill the last one.
        if file.size % BLOCK:
            self._wrong("the archive does not end where a block ends")

    def _wrong(self, note: str) -> None:
        self._sink.mark(Mark.CORRUPT, note)


def _number(text: bytes | None) -> int | None:
    try:
        return None if text is None else int(float(text))
    except (ValueError, OverflowError):
        return None


def _misspelt(stated: bytes, plain: str) -> bool:
    """Whether the two are one name but for a byte or two; tools shorten names in too many ways to say more.

    The plain header has the first bytes of the name, or the name with a question mark for each character that
    is not ASCII.
    """
    stated = stated.rstrip(b"/")
    short = plain.encode("utf-8", "surrogateescape").rstrip(b"/")
    asked = stated.decode("utf-8", "surrogateescape").encode("ascii", "replace")
    for full in (stated, asked):
        expected = full[: len(short)] if len(short) >= NAME - 1 else full
        if len(expected) == len(short):
            different = sum(a != b and ord("?") not in (a, b) for a, b in zip(expected, short, strict=True))
            return 0 < different <= 2
    return False
