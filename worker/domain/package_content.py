"""What a package is made of: windows of one content at the destination, and the files they restore."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class StoredPart:
    """The message that carries the bytes ``[offset, offset + length)`` of a content."""

    channel_id: int
    message_id: int
    document_id: int | None
    file_name: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it was posted, by name and size."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class PackageContent:
    """A package's bytes: where they lie, in order, and the files they were."""

    package_id: int
    name: str
    content_hash: bytes
    size: int
    state: str
    parts: tuple[StoredPart, ...]
    files: tuple[StoredFile, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the parts cover every byte once, and the files are made of exactly those."""
        return tiles(self.parts, self.size) and sum(file.size for file in self.files) == self.size


def tiles(parts: Sequence[StoredPart], size: int) -> bool:
    """Whether these windows, in this order, follow one another from 0 to ``size``."""
    at = 0
    for part in parts:
        if part.offset != at:
            return False
        at += part.length
    return at == size


def parts_by_file(content: PackageContent) -> list[tuple[StoredFile, list[StoredPart]]]:
    """Each file with the parts that restore it. No part holds bytes of two files."""
    starts = [0, *accumulate(file.size for file in content.files)]
    result: list[tuple[StoredFile, list[StoredPart]]] = [(file, []) for file in content.files]
    for part in content.parts:
        # Of files that begin at one place all but the last are empty.
        index = bisect_right(starts, part.offset) - 1
        if 0 <= index < len(result):
            result[index][1].append(part)
    return result
