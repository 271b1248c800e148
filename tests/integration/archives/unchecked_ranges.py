"""Which bytes of an intact archive its own listing calls unchecked."""

import memory_sets

from worker.archives.examine import actual_format, check, examine, prove
from worker.archives.sink import Sink
from worker.archives.source import Parts


def unchecked_ranges(bodies):
    """Ranges of the joined parts as start, length and reason; the parser runs in this process for once."""
    found, archive = memory_sets.set_of(bodies)
    ordered = [bodies[part.file_name] for part in found.parts]
    parts = Parts(list(map(len, ordered)), lambda part, at, length: ordered[part][at : at + length])
    limits = memory_sets.QUICK
    sink = Sink(lambda entries: None, limits.entries, limits.output_bytes)
    sink.ranges = []
    form = actual_format(parts, found.format, sink)
    proven = prove(parts, form, found.scheme, archive.indices, limits)
    check(examine(parts, form, found.scheme, proven, sink, None), sink, limits)
    return sink.ranges
