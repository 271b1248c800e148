"""Which posted files belong to one archive.

Two postings of one name must never be merged, and a part that comes late must still find its set. Files that
may belong together (same folded name, format, poster, topic) are read in posting order and cut into
consecutive runs, such that no run holds a part number twice. Among all such cuts the best has the fewest
runs, then the fewest volumes of unlike size, then the fewest steps backwards in the numbering, then the
shortest time inside runs. Albums and replies to a part glue files together before anything is cut; replies
to one other post are cut by themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from worker.domain.archive_name import recognise
from worker.domain.archive_set import ArchiveSet, Named, PostedFile, archive_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DAY = 86_400
# A part that follows its set after a longer silence, and is linked to it by nothing, is another posting's.
LATE_PART_WINDOW = 30 * DAY
MAX_STRAYS = 100
MAX_DIGITS = 9

NOT_AN_ARCHIVE = "not an archive's name"
LONE_CONTINUATION = "a continuation part without its first volume is not an archive"

Unit: TypeAlias = tuple[Named, ...]
Cost: TypeAlias = tuple[int, int, int]


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
        yield from _cut(_by_answered_post(_glue(members), late_window), late_window)


def _glue(members: Sequence[Named]) -> list[Unit]:
    """Join files of one album, and answers to the file they answer, unless a number would appear twice."""
    unit_of: dict[int, list[Named]] = {}
    albums: dict[int, list[Named]] = {}
    units: list[list[Named]] = []
    for member in members:
        file = member.file
        linked = unit_of.get(file.reply_to) if file.reply_to is not None else None
        if linked is None and file.album_id is not None:
            linked = albums.get(file.album_id)
        if linked is None or not _compatible(tuple(linked), (member,)):
            linked = []
            units.append(linked)
        linked.append(member)
        unit_of[file.message_id] = linked
        if file.album_id is not None:
            albums[file.album_id] = linked
    return [tuple(unit) for unit in units]


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
    runs = [run for answering in answers.values() for run in _cut(answering, late_window)]
    return sorted([*loose, *runs], key=lambda unit: unit[0].file.message_id)


def _compatible(left: Unit, right: Unit) -> bool:
    numbers = {m.name.index for m in left}
    if any(m.name.index in numbers for m in right):
        return False
    return _one_style(_digits(left), _digits(right))


def _digits(unit: Unit) -> tuple[int, int]:
    """The width that zero-padding shows, and the fewest digits."""
    numbers = [m.name.digits for m in unit if m.name.digits]
    padded = max((len(digits) for digits in numbers if digits.startswith("0")), default=0)
    return padded, min(map(len, numbers), default=MAX_DIGITS)


def _one_style(left: tuple[int, int], right: tuple[int, int]) -> bool:
    # part01 and part2 are numbered in two styles: two postings.
    return max(left[0], right[0]) <= min(left[1], right[1])


def _cut(units: Sequence[Unit], late_window: int) -> Iterator[Unit]:
    """Cut the units into as few runs as possible, at the cheapest of the places where that can be done."""
    earliest = _earliest_starts(units, late_window)
    count = len(units)
    before = [0] * (count + 1)  # runs needed for the units up to here
    after = [0] * (count + 1)  # runs needed for the units from here on
    for end in range(1, count + 1):
        before[end] = before[earliest[end]] + 1
    reach = count
    for start in range(count - 1, -1, -1):
        while earliest[reach] > start:
            reach -= 1
        after[start] = after[reach] + 1
    places = [place for place in range(count + 1) if before[place] + after[place] == before[count]]
    best: dict[int, tuple[Cost, int]] = {0: ((0, 0, 0), 0)}
    for rank, end in enumerate(places[1:], start=1):
        near = places[bisect_left(places, earliest[end]) : rank]
        starts = [place for place in near if before[place] == before[end] - 1]
        best[end] = min((_sum(best[p][0], _cost(_members(units[p:end]))), p) for p in starts)
    cuts = [count]
    while cuts[-1] > 0:
        cuts.append(best[cuts[-1]][1])
    for start, end in pairwise(reversed(cuts)):
        yield _members(units[start:end])


def _earliest_starts(units: Sequence[Unit], late_window: int) -> list[int]:
    """For each end, where the longest run that ends there may begin."""
    earliest = [0]
    seen: dict[int, int] = {}  # part number to the unit that had it last
    styles: dict[tuple[int, int], int] = {}  # numbering style to the unit that had it last
    for place, unit in enumerate(units):
        start = earliest[-1]
        if place and unit[0].file.date - units[place - 1][-1].file.date > late_window:
            start = place
        style = _digits(unit)
        conflicts = [seen[m.name.index] for m in unit if m.name.index in seen]
        conflicts += [last for other, last in styles.items() if not _one_style(style, other)]
        earliest.append(max([start, *(last + 1 for last in conflicts)]))
        seen.update((m.name.index, place) for m in unit)
        styles[style] = place
    return earliest


def _members(units: Sequence[Unit]) -> Unit:
    return tuple(member for unit in units for member in unit)


def _sum(left: Cost, right: Cost) -> Cost:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def _cost(run: Unit) -> Cost:
    """Volumes of unlike size (the last may be shorter), steps back in the numbering, seconds end to end."""
    by_number = sorted(run, key=lambda m: m.name.index)
    unlike = len({m.file.size for m in by_number[:-1]}) - 1 if len(run) > 1 else 0
    backwards = sum(a.name.index > b.name.index for a, b in pairwise(run))
    dates = [m.file.date for m in run]
    return unlike, backwards, max(dates) - min(dates)


def _across_topics(runs: list[Unit], late_window: int) -> list[Unit]:
    """Join a run with holes to the run of another topic that fills them, if there is just one."""
    if len({member.file.topic_id for run in runs for member in run}) == 1:
        return runs
    strays = [run for run in runs if not archive_set(run).gapless]
    if len(strays) > MAX_STRAYS:
        return runs  # so many postings of one name leave no join beyond doubt
    for tail in strays:
        heads = [run for run in runs if run is not tail and _continues(run, tail, late_window)]
        if len(heads) == 1 and any(run is tail for run in runs):
            runs = [run for run in runs if run is not tail and run is not heads[0]]
            runs.append(heads[0] + tail)
    return runs


def _continues(head: Unit, tail: Unit, late_window: int) -> bool:
    if not _compatible(head, tail) or abs(head[-1].file.date - tail[0].file.date) > late_window:
        return False
    if {m.file.topic_id for m in head} & {m.file.topic_id for m in tail}:
        return False
    return archive_set(head + tail).gapless
