"""Files as posted, and the archive sets that they form.

Grouping only reads names and circumstances. It never says that a set is whole (that takes the bytes), only
that its numbering has no hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from worker.domain.archive_name import LAST, ArchiveFormat, PartName, Scheme, part_name

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class PostedFile:
    """One file message of a source, with what tells its posting from another of the same name."""

    message_id: int
    document_id: int
    file_name: str
    size: int
    date: int
    poster_id: int | None = None
    album_id: int | None = None
    reply_to: int | None = None
    topic_id: int | None = None
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A posted file together with what its name says."""

    file: PostedFile
    name: PartName


@dataclass(frozen=True, slots=True)
class ArchiveSet:
    """The parts of one posting of one archive, in the order in which their bytes belong."""

    base_name: str
    format: ArchiveFormat
    scheme: Scheme
    members: tuple[Named, ...]

    @property
    def parts(self) -> tuple[PostedFile, ...]:
        return tuple(member.file for member in self.members)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the parts that the numbering alone shows to be absent."""
        like = self._model()
        return tuple(part_name(like, self.scheme, number) for number in self.missing_numbers)

    @property
    def missing_numbers(self) -> tuple[int, ...]:
        """The places of those parts."""
        return self.first_missing(self._highest() + 1)

    @property
    def missing_count(self) -> int:
        """How many parts the numbering shows to be absent. One name may speak of a hundred thousand."""
        numbers = self._numbers()
        counted = len(numbers - {LAST})
        return self._highest() + 1 - counted + (self.scheme is Scheme.ZIP_SPANNED and LAST not in numbers)

    def first_missing(self, most: int) -> tuple[int, ...]:
        """The places of the first ``most`` absent parts, found without a look at all that may follow."""
        have = self._numbers()
        absent = list(islice((n for n in range(self._highest() + 1) if n not in have), most))
        if self.scheme is Scheme.ZIP_SPANNED and LAST not in have and len(absent) < most:
            absent.append(LAST)
        return tuple(absent)

    @property
    def gapless(self) -> bool:
        """Whether the names show no hole; a part after the last one may still be missing."""
        return self.missing_count == 0

    def name_of(self, index: int) -> str:
        """The name of the part at ``index``, present or not."""
        if self.scheme is Scheme.SINGLE:
            scheme = Scheme.ZIP_SPANNED if self.format is ArchiveFormat.ZIP else Scheme.RAR_LEGACY
            return part_name(self._model(), scheme, index)
        return part_name(self._model(), self.scheme, index)

    def _numbers(self) -> set[int]:
        return {member.name.index for member in self.members}

    def _highest(self) -> int:
        return max((m.name.index for m in self.members if m.name.index < LAST), default=-1)

    def _model(self) -> PartName:
        # A zero-padded name shows the width; without one the shortest number is as good.
        padded = [m.name for m in self.members if m.name.digits.startswith("0")]
        numbered = sorted((m.name for m in self.members if m.name.digits), key=lambda n: len(n.digits))
        return (padded or numbered or [self.members[0].name])[0]


def archive_set(members: Iterable[Named]) -> ArchiveSet:
    """Put the members of one posting in order."""
    ordered = tuple(sorted(members, key=lambda m: m.name.index))
    schemes = {m.name.scheme for m in ordered} - {Scheme.SINGLE}
    scheme = schemes.pop() if schemes else Scheme.SINGLE
    first = ordered[0].name
    return ArchiveSet(first.base, first.format, scheme, ordered)
