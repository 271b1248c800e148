"""The volumes of a RAR set, each as its chain of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.rar4 import blocks4
from worker.archives.rar5 import blocks5
from worker.archives.rar_blocks import MAGIC5, Block, signature
from worker.domain.archive_name import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.archives.source import Parts, RangeFile


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
