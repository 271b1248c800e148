"""One set, looked at in the child: is it whole, what is in it, is it what its name says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.rar_listing import list_rar
from worker.archives.rar_proof import prove_rar
from worker.archives.sevenzip_listing import list_sevenzip
from worker.archives.sevenzip_proof import prove_sevenzip
from worker.archives.sniff import sniff
from worker.archives.tar_listing import list_tar
from worker.archives.whole import Budget, NotWholeError, refuse_doubled
from worker.archives.zip_listing import list_zip
from worker.archives.zip_proof import prove_zip
from worker.domain.archive_name import LAST, ArchiveFormat, Scheme
from worker.domain.listing import Completeness, Evidence, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.archives.rar_opener import Opener
    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.domain.listing import Limits

_PROVERS = {
    ArchiveFormat.ZIP: prove_zip,
    ArchiveFormat.RAR: prove_rar,
    ArchiveFormat.SEVEN_ZIP: prove_sevenzip,
}


def prove(
    parts: Parts, form: ArchiveFormat, scheme: Scheme, indices: Sequence[int], limits: Limits
) -> Completeness:
    """Whether these parts are the whole archive."""
    have = set(indices)
    gaps = [number for number in range(max(have - {LAST}, default=-1)) if number not in have]
    if scheme is Scheme.ZIP_SPANNED and LAST not in have:
        gaps.append(LAST)
    if gaps:
        return Completeness(complete=False, missing=tuple(gaps), reason="parts are missing by their names")
    prover = _PROVERS.get(form)
    if prover is None:
        # A tar says nowhere how long it is; it comes as one file, and that is complete as posted.
        return Completeness(complete=scheme is Scheme.SINGLE)
    try:
        proof = prover(parts, scheme, indices, _budget(limits.prove_bytes, limits))
        refuse_doubled(parts)
        return Completeness(complete=True, reason=proof.note, evidence=proof.evidence)
    except NotWholeError as no:
        return Completeness(complete=False, missing=no.missing, reason=str(no), undecided=no.undecided)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        reason = f"the headers cannot be read: {type(error).__name__}: {error}"
        return Completeness(complete=scheme is Scheme.SINGLE, reason=reason)


def examine(
    parts: Parts,
    form: ArchiveFormat,
    scheme: Scheme,
    proven: Completeness,
    sink: Sink,
    opener: Opener | None,
) -> Callable[[Budget], None]:
    """List a set. Whatever the bytes hold, this returns; the sink's marks say what was noticed.

    What is returned compares the contents with their checksums, which may take long, or kill a decoder.
    """
    if not proven.complete:
        sink.mark(Mark.INCOMPLETE, proven.reason)
    contents: Callable[[Budget], None] = _nothing
    try:
        contents = _list(parts, form, scheme, sink, opener)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        sink.mark(Mark.CORRUPT, f"{type(error).__name__}: {error}")
    if proven.complete and sink.marks == {Mark.CORRUPT} and not sink.count and sniff(parts.volume(0)) is None:
        sink.marks.discard(Mark.CORRUPT)
        sink.mark(Mark.MISNAMED, f"it begins like no archive, and nothing in it can be read as {form}")
        return _nothing
    return contents


def _nothing(_: Budget) -> None:
    """There are no contents to compare with anything."""


def check(contents: Callable[[Budget], None], sink: Sink, limits: Limits) -> None:
    """Compare contents with checksums as far as the limits allow."""
    try:
        contents(_budget(limits.verify_bytes, limits))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        sink.mark(Mark.CORRUPT, f"{type(error).__name__}: {error}")


def judge(proven: Completeness, scheme: Scheme, sink: Sink) -> Completeness:
    """Say whether a set is whole, its contents having been seen.

    Damage in a part that its headers tie to the set is damage. In a part that only its contents could have
    tied, it may as well be another archive's part: such a set is not complete.
    """
    if proven.missing:
        # What cannot be read because a part is missing is not damaged.
        sink.marks.discard(Mark.CORRUPT)
    if not proven.complete or scheme is Scheme.SINGLE:
        return proven
    loose = any(found is not Evidence.HEADERS for found in proven.evidence)
    if Mark.INCOMPLETE not in sink.marks and not (loose and Mark.CORRUPT in sink.marks):
        return proven
    reason = "contents and checksums differ: a part is damaged or of another archive"
    sink.mark(Mark.INCOMPLETE, reason)
    return Completeness(complete=False, reason=reason, evidence=proven.evidence)


def _budget(size: int, limits: Limits) -> Budget:
    # Proving and checking stop by themselves while the child still has time to tell.
    return Budget(size, 0.4 * min(limits.wall_seconds, limits.cpu_seconds))


def _list(
    parts: Parts, form: ArchiveFormat, scheme: Scheme, sink: Sink, opener: Opener | None
) -> Callable[[Budget], None]:
    if form is ArchiveFormat.ZIP:
        return list_zip(parts, sink)
    if form is ArchiveFormat.RAR:
        return list_rar(parts, scheme, sink, opener)
    if form is ArchiveFormat.SEVEN_ZIP:
        return list_sevenzip(parts, sink)
    return list_tar(parts, form, sink)


def actual_format(parts: Parts, form: ArchiveFormat, sink: Sink) -> ArchiveFormat:
    """What the bytes are; marked where the name says otherwise."""
    actual = sniff(parts.volume(0))
    if actual is None or actual is form:
        # Self-extracting archives begin with a program: the named format's own parser decides.
        return form
    sink.mark(Mark.MISNAMED, f"named {form}, but the bytes are {actual}")
    return actual
