"""The packed folders of a 7z archive: where they lie, and whether they unpack to what was packed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.archives.sevenzip_library import (
    PasswordRequired,
    SevenZipDecompressor,
    UnsupportedCompressionMethodError,
)
from worker.archives.sevenzip_start import START

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import RangeFile
    from worker.archives.whole import Budget

AES = b"\x06\xf1\x07\x01"
LZMA2 = b"\x21"
PPMD = b"\x03\x04\x01"
END_MARK = 8
BLOCK = 64 * 1024
PIECE = 1024 * 1024


class UnreadableError(Exception):
    """The folder is packed in a way that is not unpacked here; that says nothing about its bytes."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Members packed together; ``checks`` has the size of each in order, and its checksum if it has one."""

    packing: Any
    position: int
    length: int
    checks: tuple[tuple[int, int | None], ...]

    @property
    def encrypted(self) -> bool:
        return is_encrypted(self.packing)

    @property
    def fragile(self) -> bool:
        """Whether its decoder is known to die of damaged data, so that nothing else may depend on trying."""
        return any(coder["method"] == PPMD for coder in self.packing.coders)

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.checks)


def is_encrypted(packing: Any) -> bool:
    """Whether the members that are packed together in this folder need a password."""
    return packing is not None and any(coder["method"] == AES for coder in packing.coders)


def folders(archive: Any) -> Iterator[Folder]:
    """Every folder of an opened archive with the bytes it takes in the file."""
    streams = archive.header.main_streams
    if streams is None:
        return
    sizes, stream = streams.packinfo.packsizes, 0
    position = START.size + streams.packinfo.packpos
    members: dict[int, list[tuple[int, int | None]]] = {}
    for member in archive.files:
        if member.folder is not None and not member.emptystream:
            members.setdefault(id(member.folder), []).append((member.uncompressed, member.crc32))
    for packing in streams.unpackinfo.folders:
        count = max(1, len(packing.packed_indices))
        length = sum(sizes[stream : stream + count])
        yield Folder(packing, position, length, tuple(members.get(id(packing), ())))
        stream += count
        position += length


def folder_holds(file: RangeFile, folder: Folder, budget: Budget) -> bool | None:
    """Whether every member matches its checksum; None if the time ran out first.

    Raises :class:`UnreadableError` where there is no decoder, and whatever a decoder raises on damaged data.
    """
    try:
        decoder = SevenZipDecompressor(
            folder.packing.coders,
            folder.length,
            folder.packing.unpacksizes,
            folder.packing.crc,
            blocksize=BLOCK,
        )
    except (UnsupportedCompressionMethodError, PasswordRequired, KeyError, MemoryError) as error:
        raise UnreadableError(str(error)) from error
    file.seek(folder.position)
    for size, checksum in folder.checks:
        crc, left = 0, size
        while left > 0:
            if budget.expired:
                return None
            consumed = decoder.consumed
            piece = decoder.decompress(file, min(left, PIECE))
            if not piece and decoder.consumed == consumed:
                return False
            crc = zlib.crc32(piece, crc)
            left -= len(piece)
        if checksum is not None and crc != checksum:
            return False
    return _ends_well(file, folder, decoder.consumed)


def _ends_well(file: RangeFile, folder: Folder, consumed: int) -> bool:
    """All that decoders may leave unread is an end mark, which LZMA2 writes as a zero."""
    if folder.length - consumed > END_MARK:
        return False
    if folder.packing.coders[0]["method"] == LZMA2:
        return file.read_at(folder.position + folder.length - 1, 1) == b"\0"
    return True
