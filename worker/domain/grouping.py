"""Which posted files belong to one archive.

Two postings of one name must never be merged, and a part that comes late must still find its set. Files that
may belong together (same folded name, format, poster, topic) are read in posting order and cut into
consecutive runs, such that no run holds a part number twice. Among all such cuts the best has the fewest
runs, then the fewest volumes of unlike size, then the fewest steps backwards in the numbering, then the
shortest time inside runs. Albums and replies glue files together before anything is cut.
"""

from __future__ import annotations

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

NOT_AN_ARCHIVE = "not an archive's name"
LONE_CONTINUATION = "a continuation part without its first volume is not an archive"

Unit: TypeAlias = tuple[Named, ...]
Cost: TypeAlias = tuple[int, int, int, int]


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
        yield from _cut(_glue(members), late_window)


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
        if linked is None or not _compatible(linked, [member]):
            linked = []
            units.append(linked)
        linked.append(member)
        unit_of[file.message_id] = linked
        if file.album_id is not None:
            albums[file.album_id] = linked
    return [tuple(unit) for unit in units]


def _compatible(left: Sequence[Named], right: Sequence[Named]) -> bool:
    taken = {m.name.index for m in left}
    if any(m.name.index in taken for m in right):
        return False
    both = [m.name.digits for m in (*left, *right) if m.name.digits]
    # part01 and part2 are numbered in two styles: two postings.
    padded = max((len(d) for d in both if d.startswith("0")), default=0)
    return all(len(digits) >= padded for digits in both)


def _cut(units: Sequence[Unit], late_window: int) -> Iterator[Unit]:
    """Cut the units into the cheapest consecutive runs (dynamic programming over the cutting points)."""
    best: list[tuple[Cost, int]] = [((0, 0, 0, 0), 0)]
    for end in range(1, len(units) + 1):
        options: list[tuple[Cost, int]] = []
        run: Unit = ()
        for start in range(end - 1, -1, -1):
            unit = units[start]
            if run and (not _compatible(unit, run) or run[0].file.date - unit[-1].file.date > late_window):
                break
            run = unit + run
            cost = _cost(run)
            before = best[start][0]
            total = (before[0] + cost[0], before[1] + cost[1], before[2] + cost[2], before[3] + cost[3])
            options.append((total, start))
        best.append(min(options))
    cuts = [len(units)]
    while cuts[-1] > 0:
        cuts.append(best[cuts[-1]][1])
    for start, end in pairwise(reversed(cuts)):
        yield tuple(member for unit in units[start:end] for member in unit)


def _cost(run: Unit) -> Cost:
    by_number = sorted(run, key=lambda m: m.name.index)
    unlike = len({m.file.size for m in by_number[:-1]}) - 1 if len(run) > 1 else 0
    backwards = sum(a.name.index > b.name.index for a, b in pairwise(run))
    dates = [m.file.date for m in run]
    return 1, unlike, backwards, max(dates) - min(dates)


def _across_topics(runs: list[Unit], late_window: int) -> list[Unit]:
    """Join a run with holes to the run of another topic that fills them, if there is just one."""
    headless = [run for run in runs if not _has_beginning(run)]
    for tail in headless:
        heads = [run for run in runs if run is not tail and _continues(run, tail, late_window)]
        if len(heads) == 1:
            runs = [run for run in runs if run is not tail and run is not heads[0]]
            runs.append(heads[0] + tail)
    return runs


def _has_beginning(run: Unit) -> bool:
    return archive_set(run).gapless


def _continues(head: Unit, tail: Unit, late_window: int) -> bool:
    if {m.file.topic_id for m in head} & {m.file.topic_id for m in tail}:
        return False
    if not _compatible(head, tail) or not archive_set(head + tail).gapless:
        return False
    return abs(head[-1].file.date - tail[0].file.date) <= late_window
