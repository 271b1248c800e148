"""What proofs of completeness have in common, whatever the format."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.domain.listing import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.archives.source import Parts

PROBE = 4 * 1024


class NotWholeError(Exception):
    """The parts are not all there, or not all of one archive. ``missing`` holds indices of absent parts.

    ``undecided``: or they are, and nothing in them tells.
    """

    def __init__(self, reason: str, missing: tuple[int, ...] = (), *, undecided: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing
        self.undecided = undecided


@dataclass(frozen=True, slots=True)
class Proof:
    """How a set was found whole: words for a person, and what speaks for each of its parts."""

    note: str = ""
    evidence: tuple[Evidence, ...] = ()


class Budget:
    """How much of the contents may still be read, in bytes and in time."""

    def __init__(self, size: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = size
        self._clock = clock
        self._deadline = clock() + seconds

    def take(self, size: int) -> bool:
        """Spend ``size`` bytes if there are as many, and any time, left."""
        if size > self._left or self.expired:
            return False
        self._left -= size
        return True

    @property
    def seconds(self) -> float:
        """How much time is left."""
        return max(0.0, self._deadline - self._clock())

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._deadline


class PartEvidence:
    """Gathers what speaks for each part; stronger evidence replaces weaker."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._found = [Evidence.NONE] * len(parts)

    def headers(self, position: int, length: int) -> None:
        """Headers in these bytes of the joined file fit headers elsewhere."""
        for part in self._parts.spanned(position, length):
            self._found[part] = Evidence.HEADERS

    def contents(self, position: int, length: int) -> None:
        """These bytes of the joined file match a checksum."""
        for part in self._parts.spanned(position, length):
            if self._found[part] is Evidence.NONE:
                self._found[part] = Evidence.CONTENTS

    def lacking(self, position: int, length: int) -> bool:
        """Whether these bytes lie, in part, in parts that nothing speaks for."""
        return any(self._found[part] is Evidence.NONE for part in self._parts.spanned(position, length))

    @property
    def found(self) -> tuple[Evidence, ...]:
        return tuple(self._found)


def refuse_doubled(parts: Parts) -> None:
    """Raise if two parts are the same bytes, judged by their sizes and three places in each."""
    if len(parts) == 1:
        # On a server each place is a round trip.
        return
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
