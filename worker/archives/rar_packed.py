"""Packed members of a RAR set, by way of the opener: are they sound, and what is in one of them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.rar_blocks import Block, Kind
from worker.archives.rar_opener import Member
from worker.archives.rar_volumes import blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.rar_opener import Opener
    from worker.archives.source import RangeFile
    from worker.archives.whole import Budget

# A solid archive must be unpacked up to the picture; beyond this it is not worth it.
SOLID_BUDGET = 64 * 1024 * 1024


def packed_members_hold(files: Sequence[RangeFile], opener: Opener, budget: Budget) -> bool | None:
    """Whether what comes out matches every checksum; None where that cannot be found out here."""
    members = _members(files)
    if members is None:
        return None
    if not budget.take(sum(file.size for file in files) + sum(member.size for _, member in members)):
        return None
    return opener.hold([member for _, member in members], budget.seconds)


def unpack_member(files: Sequence[RangeFile], volume: int, block: Block, opener: Opener) -> bytes:
    """The contents of one member that lies in one volume; nothing if they cannot be had, or are damaged."""
    if block.solid and sum(file.size for file in files[:volume]) + block.next_offset > SOLID_BUDGET:
        return b""
    members = _members(files)
    if members is None:
        return b""
    numbers = [number for number, (place, _) in enumerate(members) if place == (volume, block)]
    return opener.read([member for _, member in members], numbers[0]) if numbers else b""


def _members(files: Sequence[RangeFile]) -> list[tuple[tuple[int, Block], Member]] | None:
    """Those that are packed, each where it ends; None if one of them is encrypted or has no such checksum."""
    found: list[tuple[tuple[int, Block], Member]] = []
    for volume, file in enumerate(files):
        for block in blocks(file):
            entry = block.entry
            if block.kind is not Kind.FILE or entry is None or block.is_link or block.split_after:
                continue
            if block.stored or entry.is_dir:
                continue
            if entry.encrypted or entry.crc32 is None:
                return None
            found.append(((volume, block), Member(entry.size, entry.crc32)))
    return found
