"""Whether the contents of a RAR set match its checksums, as far as no decoder is needed for that."""

from __future__ import annotations

import zlib
from enum import Enum
from typing import TYPE_CHECKING

from worker.archives.rar_blocks import BadRarError, Block, Kind
from worker.archives.rar_packed import packed_members_hold
from worker.archives.rar_volumes import blocks
from worker.archives.unpacking import stored_pieces
from worker.domain.listing import Mark, Unchecked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.rar_opener import Opener
    from worker.archives.sink import Sink
    from worker.archives.source import RangeFile
    from worker.archives.whole import Budget
    from worker.domain.listing import Entry

CIPHER_BLOCK, SALT = 16, 8
TRAILER = 1024 * 1024
QUICK_OPEN = "QO"
MISMATCH = "a member does not match its checksum"
STRANGERS = "the volumes do not make up the member that runs through them: one is damaged or another set's"


def check_rar(files: Sequence[RangeFile], sink: Sink, budget: Budget, opener: Opener | None) -> None:
    """Check volume after volume; mark what is wrong, name what is left. Headers were checked before."""
    checker = RarChecker(budget)
    left: list[tuple[int, Block]] = []  # contents that no checksum was compared with
    start = 0
    for file in files:
        try:
            left += [
                (start, block)
                for block in blocks(file)
                if _check_block(checker, file, block, start, sink) is Unchecked.METHOD
            ]
        except BadRarError:
            checker = RarChecker(budget)
        start += file.size
    packed = [item for item in left if not item[1].stored]
    holds = None
    if opener is not None and packed and Mark.CORRUPT not in sink.marks:
        holds = packed_members_hold(files, opener, budget)
    for begin, block in left if holds is None else [item for item in left if item[1].stored]:
        sink.leave(Unchecked.METHOD, begin + block.data_offset, block.data_size)
    if holds is False:
        sink.mark(Mark.CORRUPT, MISMATCH)
        if len(files) > 1:
            # The packed pieces in each volume were sound.
            sink.mark(Mark.INCOMPLETE, STRANGERS)


def _check_block(
    checker: RarChecker, file: RangeFile, block: Block, start: int, sink: Sink
) -> Unchecked | None:
    """Check one block; the answer is a reason if its contents are left for the unpacker."""
    if block.headers_encrypted:
        rest = file.size - block.data_offset
        sink.leave(Unchecked.ENCRYPTED, start + block.data_offset, rest)
        # Ciphers work in whole blocks; what volumes are filled up with is zeros. A member of the older format
        # runs over from volume to volume within a block.
        whole = CIPHER_BLOCK if block.kind is Kind.ENCRYPTION else 1 if block.is_volume else SALT
        if rest % whole and not _is_filled_up(file):
            sink.mark(Mark.CORRUPT, "the encrypted part does not end where a block of it ends")
    elif block.kind in (Kind.FILE, Kind.SERVICE):
        found = checker.take(file, block)
        if block.kind is Kind.FILE and found is Unchecked.METHOD:
            return found
        if isinstance(found, Unchecked):
            sink.leave(found, start + block.data_offset, block.data_size)
        elif found is not Found.SOUND:
            sink.mark(Mark.CORRUPT, MISMATCH)
        if found is Found.STRANGERS:
            sink.mark(Mark.INCOMPLETE, STRANGERS)
    elif block.kind is Kind.END:
        after = file.size - block.next_offset
        if any(file.read_at(block.next_offset, min(after, TRAILER))):  # zeros fill up volumes
            sink.mark(Mark.CORRUPT, f"{after} bytes follow the archive")
        sink.leave(Unchecked.STRAY, start + block.next_offset + TRAILER, after - TRAILER)
    else:
        sink.leave(Unchecked.FIELDS, start + block.data_offset, block.data_size)
    return None


def _is_filled_up(file: RangeFile) -> bool:
    return not any(file.read_at(file.size - SALT, SALT))


class Found(Enum):
    """What comparing a block with its checksum showed."""

    SOUND = "sound"
    DAMAGED = "damaged"
    # Every volume holds what it was written with, and yet they do not make up the member.
    STRANGERS = "strangers"


class RarChecker:
    """Compares blocks with their checksums, one after another, over volume boundaries.

    A member that goes on in the next volume carries the checksum of its packed bytes in this one; its last
    piece carries the checksum of the whole, unpacked.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._crc = 0
        self._whole = False  # whether every byte of the current member has been seen, and is stored as it is

    def take(self, file: RangeFile, block: Block) -> Found | Unchecked:
        """What the block's bytes show; or why they were not compared."""
        entry = block.entry
        assert entry is not None
        if block.kind is Kind.SERVICE:
            return self._service(file, block, entry)
        if not block.split_before:
            self._crc, self._whole = 0, block.stored and not entry.encrypted
        if block.data_size == 0 and (entry.is_dir or block.is_link or entry.crc32 in (None, 0)):
            return Found.SOUND
        reason = self._reason(block, entry)
        if reason is not None:
            self._whole = False
            return reason
        piece_crc = 0
        for piece in stored_pieces(file, block.data_offset, block.data_size):
            piece_crc = zlib.crc32(piece, piece_crc)
            self._crc = zlib.crc32(piece, self._crc) if self._whole else 0
        if block.split_after:
            sound = entry.crc32 == piece_crc
            self._whole = self._whole and sound
            return Found.SOUND if sound else Found.DAMAGED
        if entry.crc32 == self._crc:
            return Found.SOUND
        return Found.STRANGERS if block.split_before else Found.DAMAGED

    def _reason(self, block: Block, entry: Entry) -> Unchecked | None:
        if entry.crc32 is None:
            return Unchecked.METHOD
        if not block.split_after and not self._whole:
            return Unchecked.ENCRYPTED if entry.encrypted else Unchecked.METHOD
        return None if self._budget.take(block.data_size) else Unchecked.BOUND

    def _service(self, file: RangeFile, block: Block, entry: Entry) -> Found | Unchecked:
        if not block.stored or entry.encrypted or block.data_size > TRAILER:
            return Unchecked.METHOD
        data = file.read_at(block.data_offset, block.data_size)
        if entry.path == QUICK_OPEN:
            return Found.SOUND if _copies_hold(data) else Found.DAMAGED
        if entry.crc32 is None or block.split_before or block.split_after:
            return Unchecked.METHOD
        return Found.SOUND if entry.crc32 == zlib.crc32(data) else Found.DAMAGED


def _copies_hold(records: bytes) -> bool:
    """Whether the copies of headers that speed up opening match the checksum that each of them has."""
    at = 0
    while at + 5 <= len(records):
        size_at, size, shift = at + 4, 0, 0
        while size_at < len(records):
            byte = records[size_at]
            size |= (byte & 0x7F) << shift
            size_at, shift = size_at + 1, shift + 7
            if not byte & 0x80:
                break
        end = size_at + size
        if end > len(records):
            return False
        if zlib.crc32(records[at + 4 : end]) != int.from_bytes(records[at : at + 4], "little"):
            return False
        at = end
    return True
