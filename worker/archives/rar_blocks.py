"""A RAR volume as the chain of blocks that it is, for both generations of the format.

Not ``rarfile``, which opens packed members (``rar_opener``): it follows no volumes on file objects, takes a
broken header for the end of the archive, and keeps every member in memory.
Every header here carries a checksum, and every one is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.archives.source import RangeFile
    from worker.domain.listing import Entry

MAGIC4 = b"Rar!\x1a\x07\x00"
MAGIC5 = b"Rar!\x1a\x07\x01\x00"
# A self-extracting archive begins with a program of at most this size.
STUB_LIMIT = 1024 * 1024


class BadRarError(Exception):
    """The bytes are no RAR volume, or break off."""


class Kind(Enum):
    """What a block is for."""

    MAIN = "main"
    FILE = "file"
    SERVICE = "service"  # comments, recovery records and the like: built as files are, and not listed
    END = "end"
    ENCRYPTION = "encryption"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Block:
    """One block. Which of the optional values are set depends on its kind."""

    kind: Kind
    data_offset: int
    data_size: int
    is_volume: bool = False
    is_first: bool = False
    number: int | None = None
    headers_encrypted: bool = False
    salt: bytes = b""
    more_volumes: bool = False
    entry: Entry | None = None
    split_before: bool = False
    split_after: bool = False
    stored: bool = False
    solid: bool = False  # needs what was unpacked before it
    current: bool = True  # packed as RAR 2.9 to 6 do
    is_link: bool = False
    is_old_version: bool = False
    has_end_block: bool = True
    # What must be the same in every piece of a member: how it is packed.
    packing: bytes = b""
    crc_before: int | None = None  # over everything in the volume that comes before its end block

    @property
    def next_offset(self) -> int:
        return self.data_offset + self.data_size


def signature(file: RangeFile) -> tuple[int, bytes]:
    """Where the archive begins, and which generation it is of."""
    head = file.read_at(0, len(MAGIC5))
    for magic in (MAGIC5, MAGIC4):
        if head.startswith(magic):
            return 0, magic
    stub = file.read_at(0, STUB_LIMIT)
    found = [(at, magic) for magic in (MAGIC5, MAGIC4) if (at := stub.find(magic)) >= 0]
    if not found:
        raise BadRarError("there is no RAR signature")
    return min(found)
