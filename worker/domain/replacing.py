"""Parts that were posted again: which sets they would make in the place of parts that may be damaged."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, archive_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.domain.archive_set import ArchiveSet, PostedFile

# So many later files of one number, and so many single ones, are tried. Each way is a proof; where the damage
# shows only in the contents, each that is taken has all of the set fetched once more.
_MOST_WAYS = 6


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a part has replaced, it and those before it: the first message, and how many there were."""

    first: int
    count: int


def with_newer(
    found: ArchiveSet, others: Iterable[PostedFile], replaced: Mapping[int, Replaced] = MappingProxyType({})
) -> list[ArchiveSet]:
    """The set with later files of its numbers, newest first: of all numbers at once, then of one at a time.

    Which part is damaged is not known: a proof says no more than that they are not whole together.
    ``replaced`` is by the message of the part. Later is later than the first of those; where all tries of a
    number have been taken already, it is later than the last: only what was posted since is another chance.
    """
    held = {member.name.index: member for member in found.members}
    seen = {(number, member.file.document_id) for number, member in held.items()}
    later: dict[int, list[Named]] = {}
    for file in sorted(others, key=lambda other: other.message_id, reverse=True):
        name = recognise(file.file_name)
        old = held.get(name.index) if name is not None else None
        if name is None or old is None or file.message_id < _since(old.file.message_id, replaced):
            continue
        # The same document in another message is the same bytes.
        if (name.index, file.document_id) not in seen:
            seen.add((name.index, file.document_id))
            later.setdefault(name.index, []).append(Named(file, name))
    ranks = range(min(_MOST_WAYS, max(map(len, later.values()), default=0)))
    together = [{n: files[min(rank, len(files) - 1)] for n, files in later.items()} for rank in ranks]
    single = ({n: files[rank]} for rank in ranks for n, files in later.items() if rank < len(files))
    ways = [archive_set({**held, **way}.values()) for way in [*together, *islice(single, _MOST_WAYS)]]
    return list({way.parts: way for way in ways}.values())


def _since(message_id: int, replaced: Mapping[int, Replaced]) -> int:
    before = replaced.get(message_id)
    return message_id if before is None or before.count >= _MOST_WAYS else min(message_id, before.first)
