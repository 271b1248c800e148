"""Whether the parts of a zip are all there and belong together."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from worker.archives.whole import NotWholeError, PartEvidence, Proof
from worker.archives.zip_directory import LOCAL, records
from worker.archives.zip_end import BadZipError, Directory, directory_start, find_directory
from worker.archives.zip_member import checksum_holds, member_at, position_of
from worker.domain.archive_name import LAST, Scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile
    from worker.archives.whole import Budget
    from worker.archives.zip_directory import Record
    from worker.archives.zip_member import Member

MAX_NAMED = 1_000
# Members so large that a part may lie wholly inside: no more of them than parts, and a bound on those.
MAX_LARGE = 10_000


def prove_zip(parts: Parts, scheme: Scheme, indices: Sequence[int], budget: Budget) -> Proof:
    """Judge by the end record's disk numbers and by where the directory's members really begin."""
    file = parts.joined()
    try:
        directory = find_directory(file, parts)
        if directory.disk == 0 and scheme is Scheme.SINGLE:
            return Proof()
        sliced = scheme is Scheme.NUMBERED
        start = _slices(parts, directory) if sliced else _disks(parts, directory, indices)
        return _members_in_place(file, parts, directory, start, budget)
    except BadZipError as error:
        if scheme is Scheme.SINGLE:
            return Proof(f"posted as one file, damaged: {error}")
        following = (max(indices) + 1,) if scheme is Scheme.NUMBERED else ()
        raise NotWholeError(str(error), following) from error


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


def _members_in_place(
    file: RangeFile, parts: Parts, directory: Directory, start: int, budget: Budget
) -> Proof:
    """Look at the first and last member of each part, then into the parts in which none begins."""
    first: dict[int, tuple[int, Record]] = {}
    last: dict[int, tuple[int, Record]] = {}
    large: list[tuple[int, int, Record]] = []
    count = 0
    for record in records(file, start, directory):
        count += 1
        position = position_of(record, parts, 0) if directory.disk else record.offset
        spanned = parts.spanned(position, LOCAL.size + record.packed)
        part = spanned.start if spanned else len(parts) - 1
        first[part] = min(first.get(part, (position, record)), (position, record))
        last[part] = max(last.get(part, (position, record)), (position, record))
        if len(spanned) > 1 and len(large) < MAX_LARGE:
            large.append((record.packed, position, record))
    if count & 0xFFFF != directory.entries & 0xFFFF:
        raise NotWholeError("the directory does not hold as many members as it states")
    evidence = PartEvidence(parts)
    evidence.headers(start, directory.end_position - start)
    for position, record in (*first.values(), *last.values()):
        _in_place(file, record, position)
        evidence.headers(position, LOCAL.size)
    for _, position, record in heapq.nsmallest(len(large), large):
        _contents_in_place(file, position, record, evidence, budget)
    return Proof(evidence=evidence.found)


def _in_place(file: RangeFile, record: Record, position: int) -> Member:
    """The member, if its local header bears the directory out, the moment included.

    Another archive of the same files differs in little else.
    """
    member = member_at(file, record, position)
    if member is None or member.redated:
        raise NotWholeError("a member does not begin where the directory says")
    return member


def _contents_in_place(
    file: RangeFile, position: int, record: Record, evidence: PartEvidence, budget: Budget
) -> None:
    """A part that is nothing but the middle of one member is proven by that member's checksum alone."""
    member = _in_place(file, record, position)
    if not evidence.lacking(member.data, record.packed) or not member.readable:
        return
    if not budget.take(record.packed):
        return
    if not checksum_holds(file, member):
        raise NotWholeError("a part in the middle of a member is damaged or of another archive")
    evidence.contents(member.data, record.packed)
