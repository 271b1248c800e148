"""What becomes of the files that may still form sets: which sets go on, in what shape, and which are no more.

Grouping answers for files alone; here its answer is laid over the sets that exist, so that a set keeps its
row while parts come late, and nothing is written where nothing changed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from worker.domain.archive_name import LAST, ArchiveFormat, Scheme, recognise
from worker.domain.archive_set import archive_set
from worker.domain.grouping import group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker.domain.archive_set import ArchiveSet, PostedFile
    from worker.domain.listing import Completeness

PROTECTED = "its source forbids copying"
EMPTY = "it is empty"
NO_FAMILY = ""
UNCHECKED = "its bytes have to show first that nothing is missing"
# A file under such a name may be one volume of many: only its bytes tell.
_MAY_BE_A_VOLUME = (ArchiveFormat.ZIP, ArchiveFormat.RAR)
_MOST_NAMED = 5
# The key of a family is looked up through an index, whose entries hold 2,704 bytes at most.
_LONGEST_FAMILY = 256
_SHOWN_OF_FAMILY = 64
_MOST_SPARE = 3


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that belongs to no set yet, or to one that may still change."""

    file_id: int
    set_id: int | None
    posted: PostedFile
    is_protected: bool = False


@dataclass(frozen=True, slots=True)
class FormedSet:
    """A set as its row has to be written; without ``set_id`` it is one more."""

    set_id: int | None
    name: str
    format: str
    state: str
    reason: str | None
    to_prove: bool
    parts: tuple[tuple[int, int], ...]  # the file's row and its number in the set
    total_size: int
    lead: PostedFile


@dataclass(frozen=True, slots=True)
class Formation:
    """What differs from the rows: sets to write, sets whose files went elsewhere, sets that have none left,
    and files that belong to no set any more.
    """

    sets: tuple[FormedSet, ...]
    dissolved: tuple[int, ...] = ()
    emptied: tuple[int, ...] = ()
    loose: tuple[int, ...] = ()


def family_of(file_name: str) -> str:
    """The key that files share which may belong to one archive; empty for what is no archive's name."""
    name = recognise(file_name)
    if name is None:
        return NO_FAMILY
    # No line break is left in either, so that the one between them stands for nothing else.
    family = "\n".join(part.replace("\n", " ") for part in name.family)
    if len(family) <= _LONGEST_FAMILY:
        return family
    return f"{family[:_SHOWN_OF_FAMILY]} {sha256(family.encode(errors='replace')).hexdigest()}"


def form(files: Sequence[OpenFile], counts: Mapping[int, int]) -> Formation:
    """Group all open files of a family, and say what has to be written.

    ``counts`` are the open sets and how many parts their rows speak of: fewer files mean that some are gone.
    """
    by_message = {file.posted.message_id: file for file in files}
    before: dict[int, set[int]] = {}
    for file in files:
        if file.set_id is not None:
            before.setdefault(file.set_id, set()).add(file.file_id)
    grouping = group(file.posted for file in files)
    kept: set[int] = set()
    changed: list[FormedSet] = []
    for found in grouping.sets:
        members = [by_message[part.message_id] for part in found.parts]
        set_id = _continued(members, kept)
        if set_id is not None:
            kept.add(set_id)
            if before[set_id] == {m.file_id for m in members} and counts[set_id] == len(members):
                continue
        changed.append(_formed(set_id, found, members))
    ignored = [by_message[item.file.message_id] for item in grouping.ignored]
    return Formation(
        sets=tuple(changed),
        dissolved=tuple(sorted(before.keys() - kept)),
        emptied=tuple(sorted(counts.keys() - before.keys())),
        loose=tuple(file.file_id for file in ignored if file.set_id is not None),
    )


def _continued(members: Sequence[OpenFile], taken: set[int]) -> int | None:
    """The set that most of these files were in before; the oldest of several."""
    votes = Counter(m.set_id for m in members if m.set_id is not None and m.set_id not in taken)
    return min(votes, key=lambda set_id: (-votes[set_id], set_id)) if votes else None


def _formed(set_id: int | None, found: ArchiveSet, members: Sequence[OpenFile]) -> FormedSet:
    to_prove = found.scheme is not Scheme.SINGLE or found.format in _MAY_BE_A_VOLUME
    state, reason = _standing(found, members, to_prove=to_prove)
    return FormedSet(
        set_id=set_id,
        name=set_name(found),
        format=found.format.value,
        state=state,
        reason=reason,
        to_prove=to_prove and found.gapless and reason != EMPTY,
        parts=tuple(
            (member.file_id, named.name.index) for member, named in zip(members, found.members, strict=True)
        ),
        total_size=sum(part.size for part in found.parts),
        lead=found.parts[0],
    )


def _standing(found: ArchiveSet, members: Sequence[OpenFile], *, to_prove: bool) -> tuple[str, str | None]:
    if not found.gapless:
        return "collecting", waits_for(found, found.first_missing(_MOST_NAMED), found.missing_count)
    if any(member.is_protected for member in members):
        return "skipped", PROTECTED
    if found.scheme is Scheme.SINGLE and found.parts[0].size == 0:
        return "skipped", EMPTY
    return ("collecting", UNCHECKED) if to_prove else ("ready", None)


def set_name(found: ArchiveSet) -> str:
    """What a person calls the whole: a single file's own name, else the name without its numbering."""
    if found.scheme is Scheme.SINGLE:
        return found.parts[0].file_name
    return f"{found.base_name}.{found.format.value}"


def without_spares(found: ArchiveSet) -> list[ArchiveSet]:
    """What might be whole by itself among files of one name that are not whole together.

    A file named like an archive may be one, whatever numbered files stand beside it; and what follows the end
    of an archive may be left of another posting.
    """
    if found.scheme is Scheme.SINGLE:
        return []
    alone = [member for member in found.members if member.name.scheme is Scheme.SINGLE]
    fewer = [found.members[:-spare] for spare in range(1, 1 + min(_MOST_SPARE, len(found.members) - 1))]
    if found.scheme is Scheme.ZIP_SPANNED:
        fewer = []  # its last part is the one that knows of the others
    return [archive_set(members) for members in [*([alone] if alone else []), *fewer]]


def stands_alone(fewer: ArchiveSet, proven: Completeness) -> bool:
    """Whether these are whole without the rest.

    A damaged file is complete if it was posted by itself; beside others, it may as well be one part of them.
    """
    return proven.complete and not (fewer.scheme is Scheme.SINGLE and proven.reason)


def waits_for(found: ArchiveSet, missing: Sequence[int], count: int | None = None) -> str:
    """Name the parts that are missing, by number and by name; ``count`` says of how many."""
    count = len(missing) if count is None else count
    known = [number for number in (*missing, *(m.name.index for m in found.members)) if number != LAST]
    # The part called .zip comes after all that are numbered.
    spanned = found.format is ArchiveFormat.ZIP and found.scheme is not Scheme.NUMBERED
    total = max(known, default=-1) + 1 + spanned
    names = ", ".join(found.name_of(number) for number in missing[:_MOST_NAMED])
    more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
    if count == 1:
        number = total if missing[0] == LAST else missing[0] + 1
        return f"waits for part {number} of {total}: {names}"
    return f"waits for {count} parts of {total}: {names}{more}"
