"""How fast archives are listed and hashed, as ratios to the standard library in the same run.

    python benchmarks/archives.py

Exits 1 if a promise is broken: a zip of 100,000 entries listed in at most 1.5 times what ``zipfile`` takes,
within 200 MiB; hashing a file at no less than 0.9 times the speed of ``hashlib``. The later parts of a set
are hashed twice, on two cores if two are free: what that costs is printed, and depends on what else runs.
"""

import asyncio
import hashlib
import os
import resource
import statistics
import sys
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from worker.archives.digest import digest_set
from worker.archives.nursery import Nursery
from worker.archives.reader import FileReader, Part, SetBytes
from worker.domain.archive_name import LAST, ArchiveFormat, Scheme

ENTRIES = 100_000
ROUNDS = 5
HASHED = 512 * 1024 * 1024
MIB = 1024 * 1024


def make_zip(path: Path, entries: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(entries):
            archive.writestr(f"folder {number % 100:02d}/picture number {number:06d}.jpg", b"x")


def timed(work) -> float:  # noqa: ANN001  # any callable
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


async def timed_async(work) -> float:  # noqa: ANN001  # any awaitable
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def as_set(reader: FileReader) -> SetBytes:
    return SetBytes(ArchiveFormat.ZIP, Scheme.SINGLE, (Part("a.zip", reader),), (LAST,))


async def listing(folder: Path) -> float:
    """Rounds alternate, so that a busy machine slows both sides alike."""
    large, small = folder / "large.zip", folder / "small.zip"
    make_zip(large, ENTRIES)
    make_zip(small, 3)
    ours, theirs, tiny = [], [], []
    async with Nursery() as nursery:
        with FileReader(large) as reader, FileReader(small) as small_reader:
            await nursery.examine(as_set(small_reader))  # starts the process that children are forked from
            for _ in range(ROUNDS):
                theirs.append(timed(lambda: zipfile.ZipFile(large).infolist()))
                ours.append(await timed_async(nursery.examine(as_set(reader))))
                tiny.append(await timed_async(nursery.examine(as_set(small_reader))))
    own, reference, least = (statistics.median(times) for times in (ours, theirs, tiny))
    print(f"zip of {ENTRIES} entries: zipfile {reference:.3f} s, ours {own:.3f} s")
    print(f"  ratio {own / reference:.2f} (at most 1.50); a zip of 3 entries: {least * 1000:.1f} ms")
    return own / reference


class Slice:
    """One of ``count`` equal windows over a file."""

    def __init__(self, path: Path, number: int, count: int) -> None:
        self._file = FileReader(path)
        self._start = self._file.size * number // count
        self.size = self._file.size * (number + 1) // count - self._start

    async def read_at(self, offset: int, length: int) -> bytes:
        return await self._file.read_at(self._start + offset, min(length, self.size - offset))

    def __del__(self) -> None:
        self._file.close()


async def hashing(folder: Path) -> float:
    path = folder / "bytes"
    block = bytes(range(256)) * (MIB // 256)
    with path.open("wb") as file:
        for _ in range(HASHED // MIB):
            file.write(block)
    data = path.read_bytes()
    counts = (1, 2, 10)
    walls, cpus = {count: [] for count in (0, *counts)}, {count: [] for count in (0, *counts)}
    for _ in range(ROUNDS):
        for count in (0, *counts):
            wall, cpu = time.perf_counter(), time.process_time()
            if count == 0:
                hashlib.sha256(data).digest()
            else:
                await digest_set([Slice(path, number, count) for number in range(count)])
            walls[count].append(time.perf_counter() - wall)
            cpus[count].append(time.process_time() - cpu)
    wall0, cpu0 = statistics.median(walls[0]), statistics.median(cpus[0])
    load = os.getloadavg()[0]
    print(f"SHA-256: hashlib {HASHED / MIB / wall0:.0f} MiB/s; {os.cpu_count()} cores, load {load:.1f}")
    ratios = {}
    for count in counts:
        wall, cpu = statistics.median(walls[count]), statistics.median(cpus[count])
        ratios[count] = wall0 / wall
        speed = f"{ratios[count]:.2f} of its speed" + (" (at least 0.90)" if count == 1 else "")
        print(f"  {count:>2} parts: {speed}, {cpu / cpu0:.2f} of its CPU")
    return ratios[1]


def peak_mib(who: int) -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(who).ru_maxrss * unit / MIB


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        slow = asyncio.run(listing(Path(folder)))
        own, child = peak_mib(resource.RUSAGE_SELF), peak_mib(resource.RUSAGE_CHILDREN)
        print(f"peak memory while listing: {own:.0f} MiB here, {child:.0f} MiB in a child (at most 200)")
        fast = asyncio.run(hashing(Path(folder)))
    return 0 if slow <= 1.5 and max(own, child) <= 200 and fast >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
