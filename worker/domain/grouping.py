"""Which posted files belong to one archive.

Two postings of one name must never be merged, and a part that comes late must still find its set. Files that
may belong together (same folded name, format, poster, topic) are read in posting order and cut into
consecutive runs. Albums and replies to a part glue files together before anything is cut; replies to one
other post are cut by themselves.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.domain.archive_name import LAST, Scheme, recognise
from worker.domain.archive_set import ArchiveSet, Named, PostedFile, archive_set
from worker.domain.cutting import (
    MAX_DIGITS,
    Style,
    Unit,
    both_styles,
    cut_into_runs,
    is_one_style,
    style_of,
    style_of_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DAY = 86_400
# A part that follows its set after a longer silence, and is linked to it by nothing, is another posting's.
LATE_PART_WINDOW = 30 * DAY
MAX_STRAYS = 100

NOT_AN_ARCHIVE = "not an archive's name"
LONE_CONTINUATION = "a continuation part without its first volume is not an archive"


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file that belongs to no set, and why."""

    file: PostedFile
    reason: str


@dataclass(frozen=True, slots=True)
class Grouping:
    """Every file given is in exactly one set or in ``ignored``."""

    sets: tuple[ArchiveSet, ...]
    ignored: tuple[Ignored, ...]


def group(files: Iterable[PostedFile], *, late_window: int = LATE_PART_WINDOW) -> Grouping:
    """Form archive sets out of files in any order; asking again with more files lets late parts in."""
    ignored: list[Ignored] = []
    families: dict[tuple[str, str, int | None], list[Named]] = defaultdict(list)
    for file in sorted(files, key=lambda f: f.message_id):
        name = recognise(file.file_name)
        if name is None:
            ignored.append(Ignored(file, NOT_AN_ARCHIVE))
        else:
            families[(*name.family, file.poster_id)].append(Named(file, name))
    sets: list[ArchiveSet] = []
    for family in families.values():
        for members in _across_topics(list(_runs_by_topic(family, late_window)), late_window):
            if _is_lone_continuation(members):
                ignored.extend(Ignored(m.file, LONE_CONTINUATION) for m in members)
            else:
                sets.append(archive_set(members))
    sets.sort(key=lambda s: min(part.message_id for part in s.parts))
    ignored.sort(key=lambda i: i.file.message_id)
    return Grouping(tuple(sets), tuple(ignored))


def _is_lone_continuation(members: Unit) -> bool:
    # Two consecutive volumes are no accident: such a set waits for its first part and names it.
    return len(members) == 1 and not members[0].name.anchored


def _runs_by_topic(family: Sequence[Named], late_window: int) -> Iterator[Unit]:
    topics: dict[int | None, list[Named]] = defaultdict(list)
    for member in family:
        topics[member.file.topic_id].append(member)
    for members in topics.values():
        yield from cut_into_runs(_by_answered_post(_glue(members), late_window), late_window)


@dataclass(slots=True)
class _Glued:
    """Files that belong together whatever is cut, with what tells which others may join them."""

    members: list[Named] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    style: Style = (0, MAX_DIGITS)

    def takes(self, member: Named) -> bool:
        return member.name.index not in self.numbers and is_one_style(self.style, style_of_name(member))

    def add(self, member: Named) -> None:
        self.members.append(member)
        self.numbers.add(member.name.index)
        self.style = both_styles(self.style, style_of_name(member))


def _glue(members: Sequence[Named]) -> list[Unit]:
    """Join files of one album, and answers to the file they answer, unless a number would appear twice."""
    unit_of: dict[int, _Glued] = {}
    albums: dict[int, _Glued] = {}
    units: list[_Glued] = []
    for member in members:
        file = member.file
        linked = unit_of.get(file.reply_to) if file.reply_to is not None else None
        if linked is None and file.album_id is not None:
            linked = albums.get(file.album_id)
        if linked is None or not linked.takes(member):
            linked = _Glued()
            units.append(linked)
        linked.add(member)
        unit_of[file.message_id] = linked
        if file.album_id is not None:
            albums[file.album_id] = linked
    return [tuple(unit.members) for unit in units]


def _by_answered_post(units: Sequence[Unit], late_window: int) -> list[Unit]:
    """Cut the answers to each post by themselves: two postings under two posts may be sent in turns."""
    answers: dict[int, list[Unit]] = defaultdict(list)
    loose: list[Unit] = []
    for unit in units:
        answered = unit[0].file.reply_to
        # Whatever is said in a forum's topic answers the message that began it.
        if answered is None or answered == unit[0].file.topic_id:
            loose.append(unit)
        else:
            answers[answered].append(unit)
    runs = [run for answering in answers.values() for run in cut_into_runs(answering, late_window)]
    return sorted([*loose, *runs], key=lambda unit: unit[0].file.message_id)


@dataclass(frozen=True, slots=True)
class _Outline:
    """What tells of a run whether it may continue another one."""

    run: Unit
    numbers: frozenset[int]
    counted: int  # leaving aside the part that comes last however many precede it
    highest: int  # of those that are counted
    style: Style
    topics: frozenset[int | None]
    is_spanned: bool

    @property
    def is_gapless(self) -> bool:
        return self.counted == self.highest + 1 and (not self.is_spanned or LAST in self.numbers)


def _outline(run: Unit) -> _Outline:
    numbers = frozenset(member.name.index for member in run)
    counted = numbers - {LAST}
    return _Outline(
        run=run,
        numbers=numbers,
        counted=len(counted),
        highest=max(counted, default=-1),
        style=style_of(run),
        topics=frozenset(member.file.topic_id for member in run),
        is_spanned=any(member.name.scheme is Scheme.ZIP_SPANNED for member in run),
    )


def _across_topics(runs: list[Unit], late_window: int) -> list[Unit]:
    """Join a run with holes to the run of another topic that fills them, if there is just one."""
    outlines = [_outline(run) for run in runs]
    if len({topic for outline in outlines for topic in outline.topics}) == 1:
        return runs
    strays = [outline for outline in outlines if not outline.is_gapless]
    if len(strays) > MAX_STRAYS:
        return runs  # so many postings of one name leave no join beyond doubt
    left = {id(outline): outline for outline in outlines}
    for tail in strays:
        if id(tail) not in left:
            continue
        heads = [head for head in left.values() if head is not tail and _continues(head, tail, late_window)]
        if len(heads) == 1:
            del left[id(tail)], left[id(heads[0])]
            joined = _outline(heads[0].run + tail.run)
            left[id(joined)] = joined
    return [outline.run for outline in left.values()]


def _continues(head: _Outline, tail: _Outline, late_window: int) -> bool:
    # Counted before anything is compared number by number: few runs have just as many parts as are missing.
    if head.counted + tail.counted != max(head.highest, tail.highest) + 1:
        return False
    if (head.is_spanned or tail.is_spanned) and LAST not in head.numbers and LAST not in tail.numbers:
        return False
    if abs(head.run[-1].file.date - tail.run[0].file.date) > late_window:
        return False
    return (
        is_one_style(head.style, tail.style)
        and head.topics.isdisjoint(tail.topics)
        and head.numbers.isdisjoint(tail.numbers)
    )
