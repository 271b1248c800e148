"""Whether the volumes of a RAR archive are all there and belong together.

Volume numbers, the end block's "more volumes" flag, and the member that runs from each volume into the next
must all agree. Where headers are encrypted, only salts and sizes can speak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.archives.rar_blocks import BadRarError, Block, Kind
from worker.archives.rar_listing import blocks, volumes
from worker.archives.whole import NotWholeError
from worker.domain.archive_name import Scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile
    from worker.domain.listing import Entry


@dataclass(frozen=True, slots=True)
class _Facts:
    """What one volume says about its place in the set."""

    main: Block | None
    end: Block | None
    first: Block | None
    last: Block | None
    size: int
    error: str = ""

    @property
    def encrypted(self) -> bool:
        return self.main is not None and self.main.headers_encrypted

    @property
    def number(self) -> int | None:
        for block in (self.main, self.end):
            if block is not None and block.number is not None:
                return block.number
        return None


def prove_rar(parts: Parts, scheme: Scheme, indices: Sequence[int]) -> str:
    """Judge the volumes in order; return what a person should know about how that was done."""
    files = volumes(parts, scheme)
    facts = [_facts(file) for file in files]
    if scheme is Scheme.SINGLE:
        return _single(facts[0])
    if len(files) < len(parts):
        return _slices(facts[0], files[0], max(indices) + 1)
    if all(fact.encrypted for fact in facts):
        return _encrypted(facts)
    for index, fact in enumerate(facts):
        problem = _problem(index, fact) or (_in_company(index, fact, len(facts)) if len(facts) > 1 else "")
        if problem:
            raise NotWholeError(f"volume {index + 1}: {problem}")
    for index in range(len(facts) - 1):
        if not _continues(facts[index], facts[index + 1]):
            raise NotWholeError(f"volume {index + 2} does not continue volume {index + 1}")
    end = facts[-1].end
    if end is None or end.more_volumes:
        raise NotWholeError("the last volume is not the end", (max(indices) + 1,))
    return ""


def _facts(file: RangeFile) -> _Facts:
    main = end = first = last = None
    error = ""
    try:
        for block in blocks(file):
            if block.kind in (Kind.MAIN, Kind.ENCRYPTION) and main is None:
                main = block
            elif block.kind is Kind.FILE:
                first = first or block
                last = block
            elif block.kind is Kind.END:
                end = block
    except BadRarError as failure:
        error = str(failure)
    return _Facts(main, end, first, last, file.size, error)


def _single(fact: _Facts) -> str:
    """A file posted by itself is whole, unless it says that it is one volume of several."""
    if fact.main is not None and fact.main.is_volume:
        if fact.number:
            raise NotWholeError(f"this is volume {fact.number + 1} of a set")
        if fact.end is not None and fact.end.more_volumes:
            raise NotWholeError("this is the first volume of a set", (1,))
    return fact.error


def _slices(fact: _Facts, file: RangeFile, following: int) -> str:
    if fact.encrypted:
        raise NotWholeError("encrypted headers hide where the archive ends")
    if fact.error or fact.end is None:
        raise NotWholeError(fact.error, (following,))
    if fact.end.more_volumes or fact.end.next_offset != file.size:
        raise NotWholeError("the parts hold more than the archive")
    return ""


def _problem(index: int, fact: _Facts) -> str:
    """What is wrong with one volume at its place, or nothing."""
    if fact.error or fact.main is None:
        return fact.error or "there is no main header"
    if fact.encrypted:
        return "its headers are encrypted, those of others are not"
    if fact.number is not None and fact.number != index:
        return f"it is number {fact.number + 1} of its set"
    if fact.number is None and index == 0 and fact.first is not None and fact.first.split_before:
        return "it continues a volume before it"
    return ""


def _in_company(index: int, fact: _Facts, count: int) -> str:
    assert fact.main is not None
    if not fact.main.is_volume:
        return "it is an archive of its own"
    if fact.number is None and fact.main.is_first and index > 0:
        return "it is the first of its set"
    if index < count - 1 and (fact.end is None or not fact.end.more_volumes):
        return "the archive ends here, yet parts follow"
    return ""


def _continues(left: _Facts, right: _Facts) -> bool:
    before = left.last.entry if left.last is not None and left.last.split_after else None
    after = right.first.entry if right.first is not None and right.first.split_before else None
    if before is None or after is None:
        return before is after
    return _identity(before) == _identity(after)


def _identity(entry: Entry) -> tuple[str, int, str | None, bool]:
    return entry.path, entry.size, entry.modified, entry.encrypted


def _encrypted(facts: list[_Facts]) -> str:
    """RAR5 gives all volumes of a set one salt, and volumes are of one size but for a shorter last one.

    That is all the proof that encryption leaves; a last volume that happens to be full cannot be told from
    one that more must follow.
    """
    if len(facts) == 1:
        raise NotWholeError("encrypted headers hide whether volumes follow")
    salts = {fact.main.salt for fact in facts if fact.main is not None}
    sizes = {fact.size for fact in facts[:-1]}
    if len(salts) > 1 or len(sizes) > 1 or facts[-1].size >= min(sizes):
        raise NotWholeError("encrypted headers hide whether these volumes are all")
    return "judged by salt and sizes, since the headers are encrypted"
