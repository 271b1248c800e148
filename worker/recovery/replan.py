"""Cutting anew what was never sent, for an account whose limit is smaller than the plan's. Pure."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from worker.domain.marker import Marker, find_marker
from worker.store.uploads import IntentPart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def cut_anew(parts: Sequence[IntentPart], limit: int) -> list[IntentPart]:
    """The same bytes in windows of at most ``limit``, in order, each with an id of its own.

    Windows that touch within one file are joined before they are cut; no window spans two files.
    """
    if not parts:
        return []
    cut: list[IntentPart] = []
    for _, group in groupby(parts, key=lambda part: _marker(part).file_index):
        cut.extend(_cut_file(list(group), limit))
    first = parts[0].ordinal
    return [replace(part, ordinal=first + number) for number, part in enumerate(cut)]


def _cut_file(parts: list[IntentPart], limit: int) -> Iterator[IntentPart]:
    marker, begin = _marker(parts[0]), parts[0].offset
    end = parts[-1].offset + parts[-1].length
    name, number = _numbered(parts[0], marker)
    for offset in range(begin, end, limit):
        length = min(limit, end - offset)
        whole = length == marker.file_size
        yield IntentPart(
            ordinal=0,
            file_name=name if whole else f"{name}.{number:03d}",
            offset=offset,
            length=length,
            random_id=secrets.randbits(63),
            caption=replace(marker, offset=offset, length=length).line(),
        )
        number += 1


def _numbered(part: IntentPart, marker: Marker) -> tuple[str, int]:
    """The file's own name, and the number that this part's name carries or would carry."""
    if part.length == marker.file_size:
        return part.file_name, 1
    name, _, number = part.file_name.rpartition(".")
    return name, int(number)


def _marker(part: IntentPart) -> Marker:
    marker = find_marker(part.caption)
    assert marker is not None, "every caption of ours carries a marker"
    return marker
