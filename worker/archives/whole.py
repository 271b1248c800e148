"""What proofs of completeness have in common, whatever the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.archives.source import Parts

PROBE = 4 * 1024


class NotWholeError(Exception):
    """The parts are not all there, or not all of one archive. ``missing`` holds indices of absent parts."""

    def __init__(self, reason: str, missing: tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.missing = missing


def refuse_doubled(parts: Parts) -> None:
    """Raise if two parts are the same bytes, judged by their sizes and three places in each."""
    seen: dict[tuple[int, bytes], int] = {}
    for index, size in enumerate(parts.sizes):
        file = parts.volume(index)
        places = (0, max(0, size // 2), max(0, size - PROBE))
        probe = b"".join(file.read_at(place, PROBE) for place in places)
        if len(set(probe)) < 2:
            continue  # a stretch of zeros may honestly come twice
        if (size, probe) in seen:
            raise NotWholeError(f"part {index + 1} is part {seen[size, probe] + 1} once more")
        seen[size, probe] = index
