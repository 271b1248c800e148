"""What a tar may be compressed with, and whether the compression keeps a checksum of what it holds."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import IO, TYPE_CHECKING, cast

from worker.archives.sniff import ZSTD_SKIPPED
from worker.archives.zstd_library import zstd
from worker.domain.archive_name import ArchiveFormat
from worker.domain.listing import Mark, Unchecked

if TYPE_CHECKING:
    from worker.archives.sink import Sink
    from worker.archives.source import RangeFile

GZIP_RESERVED, GZIP_HEADER_CRC, GZIP_EXTRA, GZIP_NAME, GZIP_COMMENT = 0xE0, 0x2, 0x4, 0x8, 0x10
XZ_NO_CHECK = 0
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_UNUSED, ZSTD_CHECKSUM, ZSTD_SINGLE = 0x10, 0x4, 0x20
ZSTD_SKIPPED_HEAD = 8
MAX_NAME = 64 * 1024


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


def wants_too_much(error: Exception) -> bool:
    """Whether a decoder refused only because it would have to keep more in memory than it may."""
    return isinstance(error, zstd.ZstdError) and "memory" in str(error)


def describe_stream(file: RangeFile, form: ArchiveFormat, sink: Sink) -> bool:
    """Whether all that is unpacked is under a checksum; what of the compression's header is not is noted."""
    if form is ArchiveFormat.TAR_GZ:
        _describe_gzip(file, sink)
    elif form is ArchiveFormat.TAR_BZ2:
        sink.leave(Unchecked.FIELDS, 3, 1)  # the size of its blocks
    elif form is ArchiveFormat.TAR_XZ:
        return file.read_at(7, 1) != bytes((XZ_NO_CHECK,))
    elif form is ArchiveFormat.TAR_ZST:
        return _describe_zstd(file, sink)
    return form is not ArchiveFormat.TAR


def _describe_gzip(file: RangeFile, sink: Sink) -> None:
    head = file.read_at(0, 10)
    if len(head) < 10:
        return
    flags = head[3]
    if flags & GZIP_RESERVED:
        sink.mark(Mark.CORRUPT, "the gzip header has values that nobody writes")
    end = 10
    if flags & GZIP_EXTRA:
        end += 2 + int.from_bytes(file.read_at(end, 2), "little")
    for flag in (GZIP_NAME, GZIP_COMMENT):
        if flags & flag:
            end += file.read_at(end, MAX_NAME).find(b"\0") + 1
    sink.leave(Unchecked.FIELDS, 3, end - 3)


def _describe_zstd(file: RangeFile, sink: Sink) -> bool:
    """Walk over the frames by their block headers: not every frame has a checksum."""
    position, checksummed = 0, True
    while position < file.size:
        magic = file.read_at(position, 4)
        if ZSTD_SKIPPED.fullmatch(magic):
            length = ZSTD_SKIPPED_HEAD + int.from_bytes(file.read_at(position + 4, 4), "little")
            sink.leave(Unchecked.STRAY, position, min(length, file.size - position))
            position += length
        elif magic == ZSTD_MAGIC:
            position, has_checksum = _describe_frame(file, position, sink)
            checksummed = checksummed and has_checksum
        else:
            return False
    return checksummed


def _describe_frame(file: RangeFile, position: int, sink: Sink) -> tuple[int, bool]:
    """Where the frame ends, and whether it has a checksum."""
    descriptor = int.from_bytes(file.read_at(position + 4, 1), "little")
    if descriptor & ZSTD_UNUSED:
        sink.mark(Mark.CORRUPT, "the zstd header has values that nobody writes")
    has_checksum, single = bool(descriptor & ZSTD_CHECKSUM), bool(descriptor & ZSTD_SINGLE)
    if not single:
        sink.leave(Unchecked.FIELDS, position + 5, 1)  # how much memory a decoder needs
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    stated_size = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    end = _after_blocks(file, position + 5 + (not single) + dictionary + stated_size)
    return end + 4 * has_checksum, has_checksum


def _after_blocks(file: RangeFile, position: int) -> int:
    while position < file.size:
        head = int.from_bytes(file.read_at(position, 3), "little")
        # A block that repeats one byte holds just that one, whatever its size.
        position += 3 + (1 if (head >> 1) & 3 == 1 else head >> 3)
        if head & 1:
            break
    return position
