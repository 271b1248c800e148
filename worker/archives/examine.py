"""One set, looked at in the child: is it whole, what is in it, is it what its name says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from worker.archives.sniff import sniff
from worker.archives.zip_directory import BadZipError
from worker.archives.zip_listing import list_zip
from worker.archives.zip_proof import prove_zip
from worker.domain.archive_name import ArchiveFormat, Scheme
from worker.domain.listing import Completeness, Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.domain.listing import Limits

    Lister: TypeAlias = Callable[[Parts, Sink, Limits], None]
    Prover: TypeAlias = Callable[[Parts, Scheme, Sequence[int]], Completeness]

_LISTERS: dict[ArchiveFormat, Lister] = {ArchiveFormat.ZIP: list_zip}
_PROVERS: dict[ArchiveFormat, Prover] = {ArchiveFormat.ZIP: prove_zip}


@dataclass(frozen=True, slots=True)
class Examined:
    """What the bytes turned out to be."""

    format: ArchiveFormat
    completeness: Completeness


def prove(parts: Parts, form: ArchiveFormat, scheme: Scheme, indices: Sequence[int]) -> Completeness:
    """Whether these parts, which their names show to be gapless, are the whole archive."""
    prover = _PROVERS.get(form)
    if prover is None:
        return Completeness(complete=scheme is Scheme.SINGLE)
    try:
        return prover(parts, scheme, indices)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        reason = f"the headers cannot be read: {type(error).__name__}"
        return Completeness(complete=scheme is Scheme.SINGLE, reason=reason)


def examine(
    parts: Parts, form: ArchiveFormat, scheme: Scheme, indices: Sequence[int], sink: Sink, limits: Limits
) -> Examined:
    """List a set and judge it. Whatever the bytes hold, this returns; the sink's marks say what was seen."""
    actual = _actual_format(parts, form, sink)
    completeness = prove(parts, actual, scheme, indices)
    if not completeness.complete:
        sink.mark(Mark.INCOMPLETE, completeness.reason)
    lister = _LISTERS.get(actual)
    if lister is None:
        sink.mark(Mark.UNSUPPORTED, f"{actual} is not listed")
        return Examined(actual, completeness)
    try:
        lister(parts, sink, limits)
    except MemoryError:
        raise
    except BadZipError as error:
        sink.mark(Mark.CORRUPT, str(error))
    except Exception as error:  # noqa: BLE001  # hostile bytes make the parsers raise anything
        sink.mark(Mark.CORRUPT, f"{type(error).__name__}: {error}")
    return Examined(actual, completeness)


def _actual_format(parts: Parts, form: ArchiveFormat, sink: Sink) -> ArchiveFormat:
    actual = sniff(parts.volume(0))
    if actual is None or actual is form:
        # Self-extracting archives begin with a program: the named format's own parser decides.
        return form
    sink.mark(Mark.MISNAMED, f"named {form}, but the bytes are {actual}")
    return actual
