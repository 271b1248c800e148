"""Sets whose parts lie in memory, so that tests can damage them without touching a disk."""

from hang_guard import HANG_SECONDS

from worker.archives.reader import Part, SetBytes
from worker.domain.archive_set import PostedFile
from worker.domain.grouping import group
from worker.domain.listing import Limits

# A parser that turns in a circle is told by its own processor time: on a busy machine the clock tells nothing.
QUICK = Limits(wall_seconds=HANG_SECONDS, cpu_seconds=10)


class BytesReader:
    def __init__(self, data):
        self._data = data
        self.size = len(data)
        self.reads = []

    async def read_at(self, offset, length):
        self.reads.append(length)
        return self._data[offset : offset + length]


def set_of(bodies):
    """The one set that files with these names and contents form."""
    posted = [PostedFile(n, n, name, len(body), 0) for n, (name, body) in enumerate(bodies.items(), start=1)]
    (found,) = group(posted).sets
    parts = tuple(Part(part.file_name, BytesReader(bodies[part.file_name])) for part in found.parts)
    indices = tuple(member.name.index for member in found.members)
    return found, SetBytes(found.format, found.scheme, parts, indices)


async def examined(nursery, bodies, limits=QUICK):
    """What a person would be told: complete or not, the marks, the listing."""
    found, archive = set_of(bodies)
    result = await nursery.examine(archive, limits)
    return found.gapless and result.completeness.complete, result
