"""Members of a RAR archive over any number of volumes, each parsed by itself, their pieces merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.rar_blocks import BadRarError, Block, Kind
from worker.archives.rar_check import check_rar
from worker.archives.rar_volumes import blocks, volumes
from worker.domain.listing import Entry, Mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.archives.rar_opener import Opener
    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.archives.whole import Budget
    from worker.domain.archive_name import Scheme


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


def list_rar(parts: Parts, scheme: Scheme, sink: Sink, opener: Opener | None) -> Callable[[Budget], None]:
    """Send every member to the sink; what is returned checks the contents."""
    merger = _Merger(sink)
    files = volumes(parts, scheme)
    for file in files:
        try:
            for block in blocks(file):
                if block.headers_encrypted:
                    sink.mark(Mark.ENCRYPTED)
                    sink.mark(Mark.ENCRYPTED_NAMES, "the listing itself is encrypted")
                if block.kind is not Kind.FILE or block.is_old_version:
                    continue
                merger.take(block)
                if block.is_link:
                    sink.mark(Mark.LINKS)
        except BadRarError as error:
            sink.mark(Mark.CORRUPT, str(error))
    merger.close()
    return lambda budget: check_rar(files, sink, budget, opener)
