"""Packed members of a RAR set, by way of the unpacker: are they sound, and what is in one of them?"""

from __future__ import annotations

import zlib
from itertools import chain
from typing import TYPE_CHECKING

from worker.archives.rar_blocks import Block, Kind, signature
from worker.archives.rar_volumes import blocks
from worker.archives.unpacking import stored_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from worker.archives.rar_unpacker import Unpacker
    from worker.archives.source import RangeFile
    from worker.archives.whole import Budget
    from worker.domain.listing import Entry

# A solid archive must be unpacked up to the picture; beyond this it is not worth it.
SOLID_BUDGET = 64 * 1024 * 1024


def packed_members_hold(files: Sequence[RangeFile], unpacker: Unpacker, budget: Budget) -> bool | None:
    """Whether what comes out matches every checksum in turn; None where that cannot be found out here."""
    members: list[Entry] = []
    for file in files:
        for block in blocks(file):
            entry = _with_contents(block)
            if entry is None:
                continue
            if entry.encrypted or entry.crc32 is None or not block.current:
                return None
            members.append(entry)
    if not budget.take(sum(file.size for file in files) + sum(entry.size for entry in members)):
        return None
    packed = chain.from_iterable(_volume(file, _has_data) for file in files)
    holds = _match(members, unpacker.unpack(packed), budget)
    return None if holds is False and unpacker.gave_up else holds


def _with_contents(block: Block) -> Entry | None:
    """The member whose contents come out once this block, the last of its pieces, has gone in."""
    return block.entry if _has_data(block) and not block.split_after else None


def _has_data(block: Block) -> bool:
    # What a link points to is stored as it is, has been checked, and comes out of no unpacker.
    return block.kind is Kind.FILE and block.data_size > 0 and not block.is_link


def _match(members: Iterable[Entry], unpacked: Iterator[bytes], budget: Budget) -> bool | None:
    rest = b""
    for entry in members:
        crc, left = 0, entry.size
        while left > 0:
            if budget.expired:
                return None
            rest = rest or next(unpacked, b"")
            if not rest:
                return False
            piece, rest = rest[:left], rest[left:]
            crc = zlib.crc32(piece, crc)
            left -= len(piece)
        if crc != entry.crc32:
            return False
    return not rest and next(unpacked, b"") == b""


def unpack_member(files: Sequence[RangeFile], volume: int, block: Block, unpacker: Unpacker) -> bytes:
    """The contents of one member that lies in one volume; nothing if they cannot be had, or are damaged."""
    entry = block.entry
    assert entry is not None
    before = 0
    if block.solid:
        packed, before = _with_all_before(files, volume, block)
        if before + block.next_offset > SOLID_BUDGET:
            return b""
    else:
        packed = _volume(files[volume], lambda other: other == block)
    wanted = before + entry.size
    unpacked = b""
    for piece in unpacker.unpack(packed):
        unpacked += piece
        if len(unpacked) >= wanted:
            break
    contents = unpacked[before:wanted]
    return contents if zlib.crc32(contents) == entry.crc32 else b""


def _with_all_before(files: Sequence[RangeFile], volume: int, wanted: Block) -> tuple[Iterator[bytes], int]:
    """What a solid member needs, and how much comes out before its own contents."""
    before = 0
    for file in files[: volume + 1]:
        for block in blocks(file):
            if file is files[volume] and block == wanted:
                break
            entry = _with_contents(block)
            before += entry.size if entry else 0
    whole = (_volume(file, _has_data) for file in files[:volume])
    end = wanted.data_offset
    last = _volume(files[volume], lambda block: _has_data(block) and block.data_offset <= end)
    return chain(chain.from_iterable(whole), last), before


def _volume(file: RangeFile, keep: Callable[[Block], bool]) -> Iterator[bytes]:
    """A volume as it would be with some of its members only.

    Members without contents are always left out: libarchive, up to 3.6 at least, writes garbage for them.
    """
    start, magic = signature(file)
    yield magic
    position = start + len(magic)
    for block in blocks(file):
        if block.kind in (Kind.MAIN, Kind.END) or keep(block):
            yield from stored_pieces(file, position, block.next_offset - position)
        position = block.next_offset
