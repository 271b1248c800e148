"""Parts that were posted again: which sets they would make in the place of parts that may be damaged."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, archive_set

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.domain.archive_set import ArchiveSet, PostedFile

_MOST_WAYS = 6


def with_newer(found: ArchiveSet, others: Iterable[PostedFile]) -> list[ArchiveSet]:
    """The set with the newest file of every number that has one, then with one of them at a time.

    Which part is damaged is not known: a proof says no more than that they are not whole together.
    """
    held = {member.name.index: member for member in found.members}
    newest: dict[int, Named] = {}
    for file in sorted(others, key=lambda other: other.message_id):
        name = recognise(file.file_name)
        old = held.get(name.index) if name is not None else None
        if name is not None and old is not None and file.message_id > old.file.message_id:
            newest[name.index] = Named(file, name)
    if not newest:
        return []
    ways = [archive_set({**held, **newest}.values())]
    if len(newest) > 1:
        some = islice(newest.items(), _MOST_WAYS)
        ways += [archive_set({**held, number: one}.values()) for number, one in some]
    return ways
