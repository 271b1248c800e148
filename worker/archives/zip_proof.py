"""Whether the parts of a zip are all there and belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.whole import NotWholeError
from worker.archives.zip_directory import (
    LOCAL,
    LOCAL_MAGIC,
    BadZipError,
    Directory,
    directory_start,
    find_directory,
    records,
)
from worker.domain.archive_name import LAST, Scheme

MAX_NAMED = 1_000

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile
    from worker.archives.zip_directory import Record


def prove_zip(parts: Parts, scheme: Scheme, indices: Sequence[int]) -> str:
    """Judge by the end record's disk numbers and by where the directory's members really begin."""
    file = parts.joined()
    try:
        directory = find_directory(file, parts)
        if directory.disk == 0 and scheme is Scheme.SINGLE:
            return ""
        sliced = scheme is Scheme.NUMBERED
        start = _slices(parts, directory) if sliced else _disks(parts, directory, indices)
        _members_in_place(file, parts, directory, start)
    except BadZipError as error:
        if scheme is Scheme.SINGLE:
            return f"posted as one file, damaged: {error}"
        following = (max(indices) + 1,) if scheme is Scheme.NUMBERED else ()
        raise NotWholeError(str(error), following) from error
    return ""


def _slices(parts: Parts, directory: Directory) -> int:
    start, shift = directory_start(directory, parts)
    if directory.disk or shift or directory.trailing:
        raise NotWholeError("the parts do not add up to the size that the directory states")
    return start


def _disks(parts: Parts, directory: Directory, indices: Sequence[int]) -> int:
    disks = directory.disk + 1
    have = set(indices)
    # A lying end record must not make us name 65,000 parts.
    missing = tuple(number for number in range(min(disks - 1, MAX_NAMED)) if number not in have)
    if missing or LAST not in have:
        raise NotWholeError(f"the end record counts {disks} parts", missing)
    if disks != len(parts) or directory.trailing:
        raise NotWholeError(f"the end record counts {disks} parts, there are {len(parts)}")
    return directory_start(directory, parts)[0]


def _members_in_place(file: RangeFile, parts: Parts, directory: Directory, start: int) -> None:
    """A foreign part shows where a member should begin in it: look at the first and last of each part."""
    first: dict[int, tuple[int, Record]] = {}
    last: dict[int, tuple[int, Record]] = {}
    count = 0
    for record in records(file, start, directory):
        count += 1
        position = record.offset + (parts.start_of(record.disk) if directory.disk else 0)
        part = _part_at(parts, position)
        first[part] = min(first.get(part, (position, record)), (position, record))
        last[part] = max(last.get(part, (position, record)), (position, record))
    if count & 0xFFFF != directory.entries & 0xFFFF:
        raise NotWholeError("the directory does not hold as many members as it states")
    for position, record in (*first.values(), *last.values()):
        head = file.read_at(position, LOCAL.size + len(record.name))
        if not head.startswith(LOCAL_MAGIC) or head[LOCAL.size :] != record.name:
            raise NotWholeError("a member does not begin where the directory says")


def _part_at(parts: Parts, position: int) -> int:
    for index, size in enumerate(parts.sizes):
        if position < size:
            return index
        position -= size
    return len(parts) - 1
