"""Parts that were posted again: which sets they would make in the place of parts that may be damaged."""

from __future__ import annotations

from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, archive_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.domain.archive_set import ArchiveSet, PostedFile

# So many later files of one number, and so many single ones, are tried. Each way is a proof.
_MOST_WAYS = 6


def with_newer(
    found: ArchiveSet, others: Iterable[PostedFile], firsts: Mapping[int, int] = MappingProxyType({})
) -> list[ArchiveSet]:
    """The set with later files of its numbers, newest first: of all numbers at once, then of one at a time.

    Which part is damaged is not known: a proof says no more than that they are not whole together.
    ``firsts``: by message of a part that has replaced others, the first of them. Later is later than that.
    """
    held = {member.name.index: member for member in found.members}
    seen = {(number, member.file.document_id) for number, member in held.items()}
    later: dict[int, list[Named]] = {}
    for file in sorted(others, key=lambda other: other.message_id, reverse=True):
        name = recognise(file.file_name)
        old = held.get(name.index) if name is not None else None
        if (
            name is None
            or old is None
            or file.message_id < firsts.get(old.file.message_id, old.file.message_id)
        ):
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
