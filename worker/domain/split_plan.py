"""How the files of a set are cut so that no posted part is above an account's limit.

A part is a byte window over one original file, so volume boundaries survive and nothing is written to disk
to split. A file within the limit passes through under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIB = 1024 * 1024
STANDARD_LIMIT = 1_950 * MIB
PREMIUM_LIMIT = 3_950 * MIB


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """A file of the set as it was posted."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """The bytes ``[offset, offset + length)`` of the file at ``file_index`` go out under ``name``."""

    name: str
    file_index: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Which parts are sent, in order, and what they restore."""

    files: tuple[OriginalFile, ...]
    parts: tuple[PlannedPart, ...]


def split_plan(files: Sequence[OriginalFile], limit: int) -> SplitPlan:
    """Plan parts of at most ``limit`` bytes. An empty file has no part; the plan itself restores it."""
    if limit < 1:
        raise ValueError(f"a part needs room for a byte, the limit is {limit}")
    taken = {file.name for file in files}
    parts: list[PlannedPart] = []
    for index, file in enumerate(files):
        if file.size == 0:
            continue
        if file.size <= limit:
            parts.append(PlannedPart(file.name, index, 0, file.size))
            continue
        count = -(-file.size // limit)
        names = _part_names(file.name, count, taken)
        taken.update(names)
        for number, name in enumerate(names):
            offset = number * limit
            parts.append(PlannedPart(name, index, offset, min(limit, file.size - offset)))
    return SplitPlan(tuple(files), tuple(parts))


def _part_names(name: str, count: int, taken: set[str]) -> list[str]:
    # One width for all numbers keeps the names in order under plain sorting; a wider one avoids a file of the
    # set that happens to carry such a name already.
    width = max(3, len(str(count)))
    while True:
        names = [f"{name}.{number:0{width}d}" for number in range(1, count + 1)]
        if taken.isdisjoint(names):
            return names
        width += 1


def restore(plan: SplitPlan, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Put the original files together again out of the parts' bytes (for small files: tests and checks)."""
    restored = {file.name: b"" for file in plan.files}
    for part in plan.parts:
        restored[plan.files[part.file_index].name] += contents[part.name]
    return restored
