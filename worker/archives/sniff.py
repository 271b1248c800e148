"""What a file is, by its first bytes, whatever its name says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from worker.domain.archive_name import ArchiveFormat

if TYPE_CHECKING:
    from worker.archives.source import RangeFile

_MAGIC = (
    (b"PK\x03\x04", ArchiveFormat.ZIP),
    (b"PK\x05\x06", ArchiveFormat.ZIP),  # an empty one
    (b"PK\x07\x08", ArchiveFormat.ZIP),  # the first part of a spanned one
    (b"PK00PK", ArchiveFormat.ZIP),  # planned as spanned, fitted on one disk
    (b"Rar!\x1a\x07\x00", ArchiveFormat.RAR),
    (b"Rar!\x1a\x07\x01\x00", ArchiveFormat.RAR),
    (b"7z\xbc\xaf\x27\x1c", ArchiveFormat.SEVEN_ZIP),
    (b"\x1f\x8b", ArchiveFormat.TAR_GZ),
    (b"BZh", ArchiveFormat.TAR_BZ2),
    (b"\xfd7zXZ\x00", ArchiveFormat.TAR_XZ),
    (b"\x28\xb5\x2f\xfd", ArchiveFormat.TAR_ZST),
)
# What a zstd decoder passes over: sixteen magic numbers, then a length. pzstd puts one before every frame.
ZSTD_SKIPPED = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")


def sniff(file: RangeFile) -> ArchiveFormat | None:
    """The format that the bytes show, or None where they show none that is known."""
    head = file.read_at(0, 512)
    for magic, form in _MAGIC:
        if head.startswith(magic):
            return form
    if ZSTD_SKIPPED.match(head):
        return ArchiveFormat.TAR_ZST
    if any(head) and looks_like_tar(head):  # zeros may also be the padding of a self-extractor's program
        return ArchiveFormat.TAR
    return None


def looks_like_tar(block: bytes) -> bool:
    """Whether a 512-byte block carries a tar header's own checksum, or is the end block of an empty one."""
    if len(block) < 512:
        return False
    if not any(block):
        return True
    try:
        stated = int(block[148:156].rstrip(b" \0") or b"x", 8)
    except ValueError:
        return False
    return stated == sum(block[:148]) + sum(block[156:]) + 8 * 32
