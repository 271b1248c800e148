"""One set, looked at in the child: is it whole, what is in it, is it what its name says?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.rar_listing import list_rar
from worker.archives.rar_proof import prove_rar
from worker.archives.sevenzip_listing import list_sevenzip
from worker.archives.sevenzip_proof import prove_sevenzip
from worker.archives.sniff import sniff
from worker.archives.tar_listing import list_tar
from worker.archives.whole import NotWholeError, refuse_doubled
from worker.archives.zip_listing import list_zip
from worker.archives.zip_proof import prove_zip
from worker.domain.archive_name import LAST, ArchiveFormat, Scheme
from worker.domain.listing import Completeness, Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.domain.listing import Limits

_PROVERS = {
    ArchiveFormat.ZIP: prove_zip,
    ArchiveFormat.RAR: prove_rar,
    ArchiveFormat.SEVEN_ZIP: prove_sevenzip,
}


def prove(parts: Parts, form: ArchiveFormat, scheme: Scheme, indices: Sequence[int]) -> Completeness:
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
        note = prover(parts, scheme, indices)
        refuse_doubled(parts)
        return Completeness(complete=True, reason=note)
    except NotWholeError as no:
        return Completeness(complete=False, missing=no.missing, reason=str(no))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        reason = f"the headers cannot be read: {type(error).__name__}: {error}"
        return Completeness(complete=scheme is Scheme.SINGLE, reason=reason)


def examine(
    parts: Parts, form: ArchiveFormat, scheme: Scheme, proven: Completeness, sink: Sink, limits: Limits
) -> Completeness:
    """List a set, and judge once more whether it is whole, now that its contents were seen.

    Whatever the bytes hold, this returns; the sink's marks say what was noticed.
    """
    if not proven.complete:
        sink.mark(Mark.INCOMPLETE, proven.reason)
    try:
        _list(parts, form, scheme, sink, limits)
    except MemoryError:
        sink.mark(Mark.MEMORY_LIMIT, f"parsing needs more than {limits.memory} bytes of memory")
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        sink.mark(Mark.CORRUPT, f"{type(error).__name__}: {error}")
    if proven.complete and scheme is not Scheme.SINGLE and Mark.CORRUPT in sink.marks:
        reason = "contents and checksums differ: a part is damaged or foreign"
        sink.mark(Mark.INCOMPLETE, reason)
        return Completeness(complete=False, reason=reason)
    if proven.missing:
        # What cannot be read because a part is missing is not damaged.
        sink.marks.discard(Mark.CORRUPT)
    return proven


def _list(parts: Parts, form: ArchiveFormat, scheme: Scheme, sink: Sink, limits: Limits) -> None:
    if form is ArchiveFormat.ZIP:
        list_zip(parts, sink, limits)
    elif form is ArchiveFormat.RAR:
        list_rar(parts, scheme, sink, limits)
    elif form is ArchiveFormat.SEVEN_ZIP:
        list_sevenzip(parts, sink, limits)
    else:
        list_tar(parts, form, sink)


def actual_format(parts: Parts, form: ArchiveFormat, sink: Sink) -> ArchiveFormat:
    """What the bytes are; marked where the name says otherwise."""
    actual = sniff(parts.volume(0))
    if actual is None or actual is form:
        # Self-extracting archives begin with a program: the named format's own parser decides.
        return form
    sink.mark(Mark.MISNAMED, f"named {form}, but the bytes are {actual}")
    return actual
