"""How fast archives are listed and hashed, as ratios to the standard library in the same run.

    python benchmarks/archives.py

Exits 1 if a promise is broken: a zip of 100,000 entries listed in at most 1.5 times what ``zipfile`` takes,
within 200 MiB; a set of one part or of several hashed at no less than 0.9 times the speed of ``hashlib``.

Each of our rounds runs between two of the standard library's and is compared with their mean; the median of
these ratios counts, so that what else runs on the machine hits both sides alike. The zip is timed by the
clock; beside it stands the time on all cores, ours in both processes, which knows nothing of neighbours.

Hashes are timed on the core. Both sides have the same bytes in memory, ours in ranges as downloads bring
them. ``hashlib`` passes over them once, for one digest; of a set in several parts ours makes one digest per
part beside that of the whole, on a second core. What counts is the time on the busier of the two.
The clock's ratio is printed beside it and can come near that only where two whole cores are free.
"""

import asyncio
import hashlib
import itertools
import os
import resource
import statistics
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from worker.archives.nursery import Nursery
from worker.archives.reader import FileReader, Part, SetBytes
from worker.domain.archive_name import LAST, ArchiveFormat, Scheme
from worker.telegram.transfer import DOWN_BYTES
from worker.workspace.set_hash import SetHash

MIB = 1024 * 1024
ENTRIES, ROUNDS, SLOWEST, MEMORY = 100_000, 7, 1.5, 200
# No multiple of a block of SHA-256 once it is divided into parts.
HASHED, HASH_ROUNDS, LEAST = 64 * MIB + 1, 25, 0.9
PART_COUNTS = (1, 2, 10)


def make_zip(path: Path, entries: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(entries):
            archive.writestr(f"folder {number % 100:02d}/picture number {number:06d}.jpg", b"x")


async def timed(work) -> float:  # noqa: ANN001  # any awaitable
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def cpu_of_all() -> float:
    """Seconds that this process, its children and theirs have spent on any core."""
    children = psutil.Process().children()
    return time.process_time() + sum(sum(child.cpu_times()[:4]) for child in children)


def as_set(reader: FileReader) -> SetBytes:
    return SetBytes(ArchiveFormat.ZIP, Scheme.SINGLE, (Part("a.zip", reader),), (LAST,))


async def listing(folder: Path) -> float:
    large, small = folder / "large.zip", folder / "small.zip"
    make_zip(large, ENTRIES)
    make_zip(small, 3)
    ours, tiny = [], []
    async with Nursery() as nursery:
        with FileReader(large) as reader, FileReader(small) as small_reader:
            await nursery.examine(as_set(small_reader))  # starts the process that children are forked from
            all_cpu = cpu_of_all()
            theirs = [spent(lambda: zipfile.ZipFile(large).infolist())]
            for _ in range(ROUNDS):
                ours.append(await timed(nursery.examine(as_set(reader))))
                theirs.append(spent(lambda: zipfile.ZipFile(large).infolist()))
                tiny.append(await timed(nursery.examine(as_set(small_reader))))
            all_cpu = cpu_of_all() - all_cpu
    their_cpu = sum(each.cpu for each in theirs)
    cpu_ratio = (all_cpu - their_cpu) / ROUNDS / (their_cpu / len(theirs))
    ratio = 1 / statistics.median(speeds(ours, [each.clock for each in theirs]))
    reference = statistics.median(each.clock for each in theirs)
    print(f"zip of {ENTRIES} entries: zipfile {reference:.3f} s, ours {statistics.median(ours):.3f} s")
    print(f"  ratio {ratio:.2f} (at most {SLOWEST:.2f}); {cpu_ratio:.2f} of its time on all cores")
    print(f"  a zip of 3 entries: {statistics.median(tiny) * 1000:.1f} ms")
    return ratio


def speeds(ours: list[float], theirs: list[float]) -> list[float]:
    """How fast each of our rounds was, beside the one before and the one after it."""
    pairs = itertools.pairwise(theirs)
    return [(before + after) / 2 / own for own, (before, after) in zip(ours, pairs, strict=True)]


class Spent(NamedTuple):
    """Seconds by the clock, on the busiest thread, and on all threads."""

    clock: float
    busiest: float
    cpu: float


def spent(work) -> Spent:  # noqa: ANN001  # any callable
    """What the work took; it uses this thread and at most one other."""
    clock, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
    work()
    thread, process = time.thread_time() - thread, time.process_time() - process
    return Spent(time.perf_counter() - clock, max(thread, process - thread), process)


def hash_set(data: memoryview, count: int) -> None:
    borders = [len(data) * number // count for number in range(count + 1)]
    with SetHash() as digest:
        for start, end in itertools.pairwise(borders):
            for offset in range(start, end, DOWN_BYTES):
                digest.update(data[offset : min(offset + DOWN_BYTES, end)])
            digest.end_part()
        digest.content()


def hashing() -> float:
    """The worst of the ratios."""
    data = memoryview(os.urandom(HASHED))
    print(f"SHA-256 on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    ratios = []
    for count in PART_COUNTS:
        ours, theirs = [], [spent(lambda: hashlib.sha256(data).digest())]
        for _ in range(HASH_ROUNDS):
            ours.append(spent(lambda count=count: hash_set(data, count)))
            theirs.append(spent(lambda: hashlib.sha256(data).digest()))
        clock, busiest, cpu = (
            statistics.median(speeds([each[n] for each in ours], [each[n] for each in theirs]))
            for n in range(len(Spent._fields))
        )
        ratios.append(busiest)
        print(
            f"  {count:>2} parts: {busiest:.2f} of hashlib's speed on the busier core (at least {LEAST:.2f})"
        )
        print(f"            {clock:.2f} of it by the clock; {1 / cpu:.2f} of its time on all cores")
    return min(ratios)


def peak_mib(who: int) -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(who).ru_maxrss * unit / MIB


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        slow = asyncio.run(listing(Path(folder)))
    own, child = peak_mib(resource.RUSAGE_SELF), peak_mib(resource.RUSAGE_CHILDREN)
    print(f"peak memory while listing: {own:.0f} MiB here, {child:.0f} MiB in a child (at most {MEMORY})")
    fast = hashing()
    return 0 if slow <= SLOWEST and max(own, child) <= MEMORY and fast >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
