"""Whether the volumes of a RAR archive are all there and belong together.

Volume numbers, the end block's "more volumes" flag, and the member that runs from each volume into the next
must all agree. Where headers are encrypted, only salts and sizes can speak.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from worker.archives.rar_blocks import BadRarError, Block, Kind
from worker.archives.rar_check import STRANGERS, Found, RarChecker
from worker.archives.rar_volumes import blocks, volumes
from worker.archives.whole import NotWholeError, PartEvidence, Proof
from worker.domain.archive_name import Scheme
from worker.domain.listing import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile
    from worker.archives.whole import Budget


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


def prove_rar(parts: Parts, scheme: Scheme, indices: Sequence[int], budget: Budget) -> Proof:
    """Judge the volumes in order."""
    files = volumes(parts, scheme)
    if len(files) < len(parts):
        return _slices(parts, files[0], max(indices) + 1, budget)
    facts = [_facts(file) for file in files]
    if scheme is Scheme.SINGLE:
        return Proof(_single(facts[0]))
    if all(fact.encrypted for fact in facts):
        return _encrypted(facts)
    for index, fact in enumerate(facts):
        problem = _problem(index, fact) or (_in_company(index, fact, len(facts)) if len(facts) > 1 else "")
        if problem:
            raise NotWholeError(f"volume {index + 1}: {problem}")
    linked = [_continues(left, right) for left, right in pairwise(facts)]
    for index, link in enumerate(linked):
        if link is False:
            raise NotWholeError(f"volume {index + 2} does not continue volume {index + 1}")
    end = facts[-1].end
    if end is None or end.more_volumes:
        raise NotWholeError("the last volume is not the end", (max(indices) + 1,))
    _refuse_strangers(files, facts, budget)
    return Proof(evidence=_evidence(linked))


def _refuse_strangers(files: Sequence[RangeFile], facts: Sequence[_Facts], budget: Budget) -> None:
    """Look into the members that run over: two packings of one file have the same headers."""
    checker = RarChecker(budget)
    for file, fact in zip(files, facts, strict=True):
        # A member that fills its volume is both the first and the last.
        for block in {id(block): block for block in (fact.first, fact.last) if block is not None}.values():
            runs_over = block.split_before or block.split_after
            if runs_over and checker.take(file, block) is Found.STRANGERS:
                raise NotWholeError(STRANGERS)


def _evidence(linked: list[bool | None]) -> tuple[Evidence, ...]:
    """Volumes tied to a neighbour by a member that runs over; where none does, only the numbers speak."""
    tied = [False, *(link is True for link in linked), False]
    return tuple(Evidence.HEADERS if left or right else Evidence.NONE for left, right in pairwise(tied))


def _facts(file: RangeFile, evidence: PartEvidence | None = None) -> _Facts:
    main = end = first = last = None
    error = ""
    try:
        for block in blocks(file):
            if evidence is not None:
                evidence.headers(block.data_offset - 1, 1)
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


def _slices(parts: Parts, file: RangeFile, following: int, budget: Budget) -> Proof:
    """One volume cut into slices: its chain of headers must lead through them to its end."""
    evidence = PartEvidence(parts)
    fact = _facts(file, evidence)
    if fact.encrypted:
        raise NotWholeError("encrypted headers hide where the archive ends", undecided=True)
    if fact.error or fact.end is None:
        raise NotWholeError(fact.error, (following,))
    if fact.end.more_volumes or fact.end.next_offset != file.size:
        raise NotWholeError("the parts hold more than the archive")
    checker = RarChecker(budget)
    for block in blocks(file):
        if block.kind is Kind.FILE and evidence.lacking(block.data_offset, block.data_size):
            found = checker.take(file, block)
            if found in (Found.DAMAGED, Found.STRANGERS):
                raise NotWholeError("a part is damaged or of another archive: contents and checksums differ")
            if found is Found.SOUND:
                evidence.contents(block.data_offset, block.data_size)
    return Proof(evidence=evidence.found)


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


def _continues(left: _Facts, right: _Facts) -> bool | None:
    """Whether a member runs over from one volume into the next; None if there is none on either side."""
    before = left.last if left.last is not None and left.last.split_after else None
    after = right.first if right.first is not None and right.first.split_before else None
    if before is None and after is None:
        return None
    return before is not None and after is not None and _identity(before) == _identity(after)


def _identity(block: Block) -> tuple[object, ...]:
    entry = block.entry
    assert entry is not None
    return entry.path, entry.size, entry.modified, entry.encrypted, block.packing


def _encrypted(facts: list[_Facts]) -> Proof:
    """RAR5 gives all volumes of a set one salt, and volumes are of one size but for a shorter last one.

    That is all the proof that encryption leaves; a last volume that happens to be full cannot be told from
    one that more must follow.
    """
    if len(facts) == 1:
        raise NotWholeError("encrypted headers hide whether volumes follow", undecided=True)
    salts = {fact.main.salt for fact in facts if fact.main is not None}
    sizes = {fact.size for fact in facts[:-1]}
    if len(salts) > 1 or len(sizes) > 1 or facts[-1].size >= min(sizes):
        is_one_archive = len(salts) == 1 and len(sizes) == 1 and facts[-1].size == min(sizes)
        reason = "encrypted headers hide whether these volumes are all"
        raise NotWholeError(reason, undecided=is_one_archive)
    evidence = Evidence.HEADERS if all(salts) else Evidence.NONE
    note = "judged by salt and sizes, since the headers are encrypted"
    return Proof(note, (evidence,) * len(facts))
