"""Whether the parts of a zip are all there and belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from worker.domain.listing import Completeness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile
    from worker.archives.zip_directory import Record


def prove_zip(parts: Parts, scheme: Scheme, indices: Sequence[int]) -> Completeness:
    """Judge by the end record's disk numbers and by where the directory's members really begin."""
    file = parts.joined()
    try:
        directory = find_directory(file, parts)
    except BadZipError as error:
        if scheme is Scheme.SINGLE:
            return Completeness(complete=True, reason=f"posted as one file, damaged: {error}")
        return Completeness(complete=False, missing=_next(scheme, indices), reason=str(error))
    if scheme is Scheme.NUMBERED:
        return _slices(file, parts, directory)
    return _disks(file, parts, directory, scheme, indices)


def _next(scheme: Scheme, indices: Sequence[int]) -> tuple[int, ...]:
    return (max(indices) + 1,) if scheme is Scheme.NUMBERED else ()


def _slices(file: RangeFile, parts: Parts, directory: Directory) -> Completeness:
    try:
        start, shift = directory_start(directory, parts)
    except BadZipError as error:
        return Completeness(complete=False, reason=str(error))
    if directory.disk or shift or directory.trailing:
        return Completeness(
            complete=False, reason="the parts do not add up to the size that the directory states"
        )
    return _members_in_place(file, parts, directory, start)


def _disks(
    file: RangeFile, parts: Parts, directory: Directory, scheme: Scheme, indices: Sequence[int]
) -> Completeness:
    disks = directory.disk + 1
    if disks == 1 and scheme is Scheme.SINGLE:
        return Completeness(complete=True)
    have = set(indices)
    # A lying end record must not make us name 65,000 parts.
    missing = tuple(number for number in range(min(disks - 1, 1_000)) if number not in have)
    if missing or LAST not in have:
        return Completeness(complete=False, missing=missing, reason=f"the end record counts {disks} parts")
    if disks != len(parts) or directory.trailing:
        return Completeness(
            complete=False, reason=f"the end record counts {disks} parts, there are {len(parts)}"
        )
    try:
        start, _ = directory_start(directory, parts)
    except BadZipError as error:
        return Completeness(complete=False, reason=str(error))
    return _members_in_place(file, parts, directory, start)


def _members_in_place(file: RangeFile, parts: Parts, directory: Directory, start: int) -> Completeness:
    """A foreign part shows where a member should begin in it: look at the first and last of each part."""
    first: dict[int, tuple[int, Record]] = {}
    last: dict[int, tuple[int, Record]] = {}
    count = 0
    try:
        for record in records(file, start, directory):
            count += 1
            position = record.offset + (parts.start_of(record.disk) if directory.disk else 0)
            part = _part_at(parts, position)
            first[part] = min(first.get(part, (position, record)), (position, record))
            last[part] = max(last.get(part, (position, record)), (position, record))
    except BadZipError as error:
        return Completeness(complete=False, reason=str(error))
    if count & 0xFFFF != directory.entries & 0xFFFF:
        return Completeness(complete=False, reason="the directory does not hold as many members as it states")
    for position, record in (*first.values(), *last.values()):
        head = file.read_at(position, LOCAL.size + len(record.name))
        if not head.startswith(LOCAL_MAGIC) or head[LOCAL.size :] != record.name:
            return Completeness(complete=False, reason="a member does not begin where the directory says")
    return Completeness(complete=True)


def _part_at(parts: Parts, position: int) -> int:
    for index, size in enumerate(parts.sizes):
        if position < size:
            return index
        position -= size
    return len(parts) - 1
