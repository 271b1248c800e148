"""Packed bytes into plain ones, a bounded piece at a time, with every complaint of a decoder in one error."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING, Protocol

from worker.archives.zstd_library import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from worker.archives.source import RangeFile

PIECE = 256 * 1024
# The most that one step may unpack to: a few bytes can claim to be gigabytes.
STEP = 1024 * 1024


class BadStreamError(Exception):
    """The packed bytes are damaged, break off, or go on after their end."""


class Decoder(Protocol):
    """What the decoders of bz2, lzma and zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class Inflater:
    """Raw deflate behind the interface that the other decoders share."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(-zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = STEP, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def lzma_of_known_size(properties: bytes, size: int | None) -> tuple[Decoder, bytes]:
    """A decoder for a bare LZMA stream, and the header that it must be fed first.

    Given the size, the decoder also checks that the stream ends just there.
    """
    stated = b"\xff" * 8 if size is None else size.to_bytes(8, "little")
    return lzma.LZMADecompressor(lzma.FORMAT_ALONE), properties[:5] + stated


MAKERS: dict[int, Callable[[], Decoder]] = {
    8: Inflater,
    12: bz2.BZ2Decompressor,
    93: zstd.ZstdDecompressor,
    95: lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}


def stored_pieces(file: RangeFile, start: int, length: int) -> Iterator[bytes]:
    """Bytes of a file, piece by piece."""
    if start + length > file.size:
        raise BadStreamError("the bytes reach beyond the end of the file")
    end = start + length
    while start < end:
        piece = file.read_at(start, min(PIECE, end - start))
        yield piece
        start += len(piece)


def unpacked_pieces(decoder: Decoder, packed: Iterable[bytes]) -> Iterator[bytes]:
    """Everything that the packed bytes unpack to; :class:`BadStreamError` unless both end together."""
    try:
        for piece in packed:
            if decoder.eof:
                raise BadStreamError("bytes follow the end of the packed data")
            yield decoder.decompress(piece, STEP)
            while not decoder.needs_input and not decoder.eof:
                yield decoder.decompress(b"", STEP)
    except (zlib.error, OSError, EOFError, ValueError, lzma.LZMAError, zstd.ZstdError) as error:
        raise BadStreamError(str(error)) from error
    if not decoder.eof or decoder.unused_data:
        raise BadStreamError("the packed data does not end where it should")
