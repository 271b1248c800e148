"""Where one posting of a name ends and the next begins.

Files in posting order, joined to units that nothing may part, are cut into consecutive runs such that no run
holds a part number twice. The best cut has the fewest runs, then the fewest volumes of unlike size, then the
fewest steps backwards in the numbering, then the shortest time inside runs.

The names are other people's, and so is their number: all of this takes time in proportion to it. Where the
cuts could be made at a great many places, the likeliest of those are compared.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from worker.domain.archive_set import Named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_DIGITS = 9
# So many places are compared where a run may begin or end; no set that people post offers more of them.
MAX_PLACES = 32

Unit: TypeAlias = tuple[Named, ...]
Cost: TypeAlias = tuple[int, int, int]
Style: TypeAlias = tuple[int, int]


def cut_into_runs(units: Sequence[Unit], late_window: int) -> Iterator[Unit]:
    """Cut the units into as few runs as possible, at the cheapest of the places where that can be done."""
    earliest = _earliest_starts(units, late_window)
    layers = _layers(units, earliest)
    steps_back = _steps_back(units)
    best: dict[int, tuple[Cost, int]] = {0: ((0, 0, 0), 0)}
    for starts, ends in pairwise(layers):
        for end in ends:
            possible = [place for place in starts if place >= earliest[end]]
            best[end] = min(
                (_sum(best[start][0], cost), start)
                for start, cost in _costs(units, possible, end, steps_back)
            )
    cuts = [len(units)]
    while cuts[-1] > 0:
        cuts.append(best[cuts[-1]][1])
    for start, end in pairwise(reversed(cuts)):
        yield _members(units[start:end])


def _layers(units: Sequence[Unit], earliest: Sequence[int]) -> list[list[int]]:
    """The places where runs may end when there are as few as possible: after the first run, the second…"""
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
    layers: list[list[int]] = [[] for _ in range(before[count] + 1)]
    for place in range(count + 1):
        if before[place] + after[place] == before[count]:
            layers[before[place]].append(place)
    return [_likeliest(units, layer) for layer in layers]


def _likeliest(units: Sequence[Unit], places: list[int]) -> list[int]:
    """Those of these places that look most like the end of one posting and the beginning of the next."""
    if len(places) <= MAX_PLACES:
        return places

    def likelihood(place: int) -> tuple[bool, bool, int]:
        left, right = units[place - 1][-1], units[place][0]
        return (
            right.name.index < left.name.index,
            right.file.size != left.file.size,
            right.file.date - left.file.date,
        )

    # From the last place of a layer every place of the next one can be reached.
    *others, last = places
    return [*sorted(heapq.nlargest(MAX_PLACES, others, key=likelihood)), last]


def _earliest_starts(units: Sequence[Unit], late_window: int) -> list[int]:
    """For each end, where the longest run that ends there may begin."""
    earliest = [0]
    seen: dict[int, int] = {}  # part number to the unit that had it last
    styles: dict[Style, int] = {}  # numbering style to the unit that had it last
    for place, unit in enumerate(units):
        start = earliest[-1]
        if place and unit[0].file.date - units[place - 1][-1].file.date > late_window:
            start = place
        style = style_of(unit)
        conflicts = [seen[m.name.index] for m in unit if m.name.index in seen]
        conflicts += [last for other, last in styles.items() if not is_one_style(style, other)]
        earliest.append(max([start, *(last + 1 for last in conflicts)]))
        seen.update((m.name.index, place) for m in unit)
        styles[style] = place
    return earliest


def _members(units: Sequence[Unit]) -> Unit:
    return tuple(member for unit in units for member in unit)


def _sum(left: Cost, right: Cost) -> Cost:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def _steps_back(units: Sequence[Unit]) -> list[int]:
    """For each unit, how many steps back in the numbering there are from the first file to its own first."""
    before: list[int] = []
    steps, last = 0, -1
    for unit in units:
        steps += unit[0].name.index < last
        before.append(steps)
        steps += sum(a.name.index > b.name.index for a, b in pairwise(unit))
        last = unit[-1].name.index
    return [*before, steps]


def _costs(
    units: Sequence[Unit], starts: Sequence[int], end: int, steps_back: Sequence[int]
) -> Iterator[tuple[int, Cost]]:
    """What the runs cost that end here: volumes of unlike size (the last may be shorter), steps back in the
    numbering, seconds from the first to the last.
    """
    sizes: dict[int, int] = defaultdict(int)
    count, last_number, last_size = 0, -1, 0
    earliest_date = latest_date = units[end - 1][-1].file.date
    at = end
    up_to_here = _steps_within(units, steps_back, end)
    for start in sorted(starts, reverse=True):
        while at > start:
            at -= 1
            for member in units[at]:
                sizes[member.file.size] += 1
                count += 1
                if member.name.index > last_number:
                    last_number, last_size = member.name.index, member.file.size
                earliest_date = min(earliest_date, member.file.date)
                latest_date = max(latest_date, member.file.date)
        unlike = len(sizes) - (sizes[last_size] == 1) - 1 if count > 1 else 0
        yield start, (unlike, up_to_here - steps_back[start], latest_date - earliest_date)


def _steps_within(units: Sequence[Unit], steps_back: Sequence[int], end: int) -> int:
    """Steps back up to the last file before ``end``."""
    if end == len(units):
        return steps_back[end]
    return steps_back[end] - (units[end][0].name.index < units[end - 1][-1].name.index)


def style_of(unit: Unit) -> Style:
    """The width that zero-padding shows, and the fewest digits."""
    style = (0, MAX_DIGITS)
    for member in unit:
        style = both_styles(style, style_of_name(member))
    return style


def style_of_name(member: Named) -> Style:
    digits = member.name.digits
    if not digits:
        return 0, MAX_DIGITS
    return (len(digits) if digits.startswith("0") else 0), len(digits)


def both_styles(left: Style, right: Style) -> Style:
    return max(left[0], right[0]), min(left[1], right[1])


def is_one_style(left: Style, right: Style) -> bool:
    # part01 and part2 are numbered in two styles: two postings.
    return max(left[0], right[0]) <= min(left[1], right[1])
