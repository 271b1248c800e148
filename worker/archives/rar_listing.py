"""Members of a RAR archive over any number of volumes, each parsed by itself, their pieces merged."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from worker.archives.rar4 import blocks4
from worker.archives.rar5 import blocks5
from worker.archives.rar_blocks import MAGIC5, BadRarError, Block, Kind, signature
from worker.domain.archive_name import Scheme
from worker.domain.listing import Entry, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.sink import Sink
    from worker.archives.source import Parts, RangeFile
    from worker.domain.listing import Limits

PIECE = 256 * 1024


def volumes(parts: Parts, scheme: Scheme) -> list[RangeFile]:
    """The RAR volumes that the parts make up: one each, or a single one cut into slices."""
    if scheme is Scheme.NUMBERED and len(parts) > 1:
        second = parts.volume(1)
        if not second.read_at(0, 6).startswith(MAGIC5[:6]):
            return [parts.joined()]
    return [parts.volume(index) for index in range(len(parts))]


def blocks(file: RangeFile) -> Iterator[Block]:
    """Every block of one volume up to its end block; :class:`BadRarError` where the chain breaks."""
    start, magic = signature(file)
    walk = blocks5 if magic == MAGIC5 else blocks4
    return walk(file, start + len(magic))


class _Merger:
    """Joins the pieces of members that run over volume boundaries."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._open: Entry | None = None

    def take(self, block: Block) -> None:
        entry = block.entry
        assert entry is not None
        if block.split_before:
            entry = self._continue(entry)
        elif self._open is not None:
            self._lost(self._open)
        if block.split_after:
            self._open = entry
        else:
            self._open = None
            self._sink.add(entry)

    def close(self) -> None:
        if self._open is not None:
            self._lost(self._open)
            self._open = None

    def _continue(self, entry: Entry) -> Entry:
        begun = self._open
        if begun is None or begun.path != entry.path:
            if begun is not None:
                self._lost(begun)
            self._sink.mark(Mark.INCOMPLETE, "a member begins in a volume that is not here")
            return entry
        packed = (begun.compressed_size or 0) + (entry.compressed_size or 0)
        return entry._replace(compressed_size=packed)

    def _lost(self, entry: Entry) -> None:
        self._sink.mark(Mark.INCOMPLETE, "a member goes on in a volume that is not here")
        self._sink.add(entry)


class _Checker:
    """Compares what is stored unpacked with its checksum, over volume boundaries, while the budget lasts."""

    def __init__(self, sink: Sink, budget: int) -> None:
        self._sink = sink
        self._budget = budget
        self._crc = 0
        self._whole = False  # whether every byte of the current member has been seen

    def take(self, file: RangeFile, block: Block) -> None:
        entry = block.entry
        assert entry is not None
        if not block.split_before:
            self._crc, self._whole = 0, True
        self._budget -= block.data_size
        if entry.encrypted or not block.stored or block.is_link or self._budget < 0:
            self._whole = False
        if not self._whole:
            return
        position = block.data_offset
        while position < block.next_offset:
            piece = file.read_at(position, min(PIECE, block.next_offset - position))
            self._crc = zlib.crc32(piece, self._crc)
            position += len(piece)
        if not block.split_after and not entry.is_dir and entry.crc32 not in (None, self._crc):
            self._sink.mark(Mark.CORRUPT, "a member does not match its checksum")


def list_rar(parts: Parts, scheme: Scheme, sink: Sink, limits: Limits) -> None:
    """Send every member to the sink."""
    merger, checker = _Merger(sink), _Checker(sink, limits.verify_bytes)
    for file in volumes(parts, scheme):
        try:
            for block in blocks(file):
                if block.headers_encrypted:
                    sink.mark(Mark.ENCRYPTED)
                    sink.mark(Mark.ENCRYPTED_NAMES, "the listing itself is encrypted")
                if block.kind is not Kind.FILE or block.is_old_version:
                    continue
                merger.take(block)
                checker.take(file, block)
                if block.is_link:
                    sink.mark(Mark.LINKS)
        except BadRarError as error:
            sink.mark(Mark.CORRUPT, str(error))
    merger.close()
