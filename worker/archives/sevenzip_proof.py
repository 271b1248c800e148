"""Whether the slices of a 7z archive are all there and belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.sevenzip_contents import UnreadableError, folder_holds, folders
from worker.archives.sevenzip_library import PasswordRequired, SevenZipFile, UnsupportedCompressionMethodError
from worker.archives.sevenzip_start import START, BadSevenZipError, StartHeader, header_holds, start_header
from worker.archives.whole import NotWholeError, PartEvidence, Proof
from worker.domain.archive_name import Scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.source import Parts, RangeFile
    from worker.archives.whole import Budget

MAX_NAMED = 1_000


def prove_sevenzip(parts: Parts, scheme: Scheme, indices: Sequence[int], budget: Budget) -> Proof:
    """Compare the end that the start header promises with what is there, then look in between."""
    file = parts.joined()
    try:
        header = start_header(file)
    except BadSevenZipError as error:
        if scheme is Scheme.SINGLE:
            return Proof(str(error))
        raise NotWholeError(str(error)) from error
    if scheme is Scheme.SINGLE:
        return Proof()
    _adds_up(parts, header, max(indices) + 1)
    if not header_holds(file, header):
        raise NotWholeError("the end of the last part is not this archive's")
    evidence = PartEvidence(parts)
    evidence.headers(0, START.size)
    evidence.headers(header.offset, header.size)
    if evidence.lacking(0, parts.total):
        _contents_in_place(file, evidence, budget)
    return Proof(evidence=evidence.found)


def _adds_up(parts: Parts, header: StartHeader, following: int) -> None:
    if header.end > parts.total:
        absent = -(-(header.end - parts.total) // max(1, parts.sizes[0]))
        missing = tuple(range(following, following + min(absent, MAX_NAMED)))
        raise NotWholeError(f"{header.end - parts.total} bytes are missing", missing)
    if header.end < parts.total:
        raise NotWholeError("the parts hold more than the archive")
    if len(set(parts.sizes[:-1])) > 1:
        raise NotWholeError("the parts before the last are not all of one size")


def _contents_in_place(file: RangeFile, evidence: PartEvidence, budget: Budget) -> None:
    """Slices carry nothing of their own: only unpacking what lies in them can tell whose they are."""
    try:
        archive = SevenZipFile(file)
    except (PasswordRequired, UnsupportedCompressionMethodError):
        return
    for folder in sorted(folders(archive), key=lambda folder: folder.length):
        if folder.encrypted or folder.fragile or not evidence.lacking(folder.position, folder.length):
            continue
        if not budget.take(folder.length):
            return
        try:
            holds = folder_holds(file, folder, budget)
        except UnreadableError:
            continue
        except Exception as error:  # the decoders raise whatever damaged data makes them raise
            raise NotWholeError(f"a part is damaged or of another archive: {type(error).__name__}") from error
        if holds is False:
            raise NotWholeError("a part is damaged or of another archive: contents and checksums differ")
        if holds:
            evidence.contents(folder.position, folder.length)
