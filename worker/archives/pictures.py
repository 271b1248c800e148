"""Candidates for a preview among an archive's members, best first, and their bytes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from worker.archives.rar_blocks import Kind
from worker.archives.rar_packed import unpack_member
from worker.archives.rar_volumes import blocks, volumes
from worker.archives.sevenzip_contents import is_encrypted
from worker.archives.sevenzip_library import BytesIOFactory, SevenZipFile
from worker.archives.tar_listing import members
from worker.archives.tar_streams import unpacked
from worker.archives.zip_directory import records
from worker.archives.zip_end import directory_start, find_directory
from worker.archives.zip_listing import record_entry
from worker.archives.zip_member import contents, member_at, position_of
from worker.domain.archive_name import ArchiveFormat
from worker.domain.preview_choice import picture_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker.archives.rar_opener import Opener
    from worker.archives.source import Parts, RangeFile
    from worker.archives.zip_directory import Record
    from worker.domain.archive_name import Scheme
    from worker.domain.preview_choice import Rank

CANDIDATES = 3
# A solid 7z must be unpacked up to the picture; beyond this it is not worth it.
SOLID_BUDGET = 64 * 1024 * 1024


@dataclass(order=True, slots=True)
class _Candidate:
    rank: Rank
    read: Callable[[], bytes] = field(compare=False)


def pictures(
    parts: Parts, form: ArchiveFormat, scheme: Scheme, limit: int, opener: Opener | None
) -> Iterator[tuple[str, bytes]]:
    """The best pictures of a set as path and bytes. What is out of reach is left out."""
    if form is ArchiveFormat.ZIP:
        found = _in_zip(parts, limit)
    elif form is ArchiveFormat.RAR:
        found = _in_rar(parts, scheme, limit, opener)
    elif form is ArchiveFormat.SEVEN_ZIP:
        found = _in_sevenzip(parts, limit)
    else:
        found = _in_tar(parts, form, limit)
    for candidate in heapq.nsmallest(CANDIDATES, found):
        yield candidate.rank[-1], candidate.read()


def _in_zip(parts: Parts, limit: int) -> Iterator[_Candidate]:
    file = parts.joined()
    directory = find_directory(file, parts)
    start, shift = directory_start(directory, parts)
    for record in records(file, start, directory):
        entry = record_entry(record)
        rank = picture_rank(entry.path, entry.size, limit)
        if rank is not None and not entry.encrypted and record.packed <= 2 * limit:
            position = position_of(record, parts, shift)
            yield _Candidate(rank, partial(_read_zip, file, record, position, limit))


def _read_zip(file: RangeFile, record: Record, position: int, limit: int) -> bytes:
    member = member_at(file, record, position)
    if member is None or not member.readable:
        return b""
    picture = b""
    for piece in contents(file, member):
        picture += piece
        if len(picture) > limit:
            return b""
    return picture


def _in_rar(parts: Parts, scheme: Scheme, limit: int, opener: Opener | None) -> Iterator[_Candidate]:
    """Members that lie in one volume, stored as they are or within the opener's reach."""
    files = volumes(parts, scheme)
    for volume, file in enumerate(files):
        for block in blocks(file):
            entry = block.entry
            if block.kind is not Kind.FILE or entry is None or entry.encrypted or block.is_link:
                continue
            rank = picture_rank(entry.path, entry.size, limit)
            if rank is None or block.split_before or block.split_after:
                continue
            if block.stored:
                yield _Candidate(rank, partial(file.read_at, block.data_offset, block.data_size))
            elif opener is not None:
                yield _Candidate(rank, partial(unpack_member, files, volume, block, opener))


def _in_sevenzip(parts: Parts, limit: int) -> Iterator[_Candidate]:
    archive = SevenZipFile(parts.joined())
    folder, unpacked_before = None, 0
    for member in archive.files:
        size = member.uncompressed or 0
        if member.folder is not folder:
            folder, unpacked_before = member.folder, 0
        unpacked_before += size
        rank = picture_rank(member.filename, size, limit)
        if rank is not None and unpacked_before <= SOLID_BUDGET and not is_encrypted(folder):
            yield _Candidate(rank, partial(_read_sevenzip, archive, member.filename, limit))


def _read_sevenzip(archive: Any, name: str, limit: int) -> bytes:
    factory = BytesIOFactory(limit)
    archive.reset()
    archive.extract(targets=[name], factory=factory)
    return bytes(factory.get(name).read())


def _in_tar(parts: Parts, form: ArchiveFormat, limit: int) -> Iterator[_Candidate]:
    stream = unpacked(parts.joined(), form)
    for member in members(stream):
        rank = picture_rank(member.name, member.size, limit) if member.isreg() else None
        if rank is not None:
            yield _Candidate(rank, partial(_read_stream, stream, member.offset_data, member.size))


def _read_stream(stream: IO[bytes], offset: int, size: int) -> bytes:
    stream.seek(offset)
    return stream.read(size)
