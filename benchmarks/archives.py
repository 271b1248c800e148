"""How fast archives are listed and hashed, as ratios to the standard library in the same run.

    python benchmarks/archives.py

Exits 1 if a promise is broken: a zip of 100,000 entries listed in at most 1.5 times what ``zipfile`` takes,
within 200 MiB; hashing at no less than 0.9 times the speed of ``hashlib``.
"""

import asyncio
import hashlib
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


async def hashing(folder: Path) -> float:
    path = folder / "bytes"
    block = bytes(range(256)) * (MIB // 256)
    with path.open("wb") as file:
        for _ in range(HASHED // MIB):
            file.write(block)
    data = path.read_bytes()
    ours, theirs, halves = [], [], []
    with FileReader(path) as reader:
        for _ in range(ROUNDS):
            theirs.append(timed(lambda: hashlib.sha256(data).digest()))
            ours.append(await timed_async(digest_set([reader])))
            halves.append(await timed_async(digest_set([reader, reader])) / 2)
    speeds = [HASHED / MIB / statistics.median(times) for times in (theirs, ours, halves)]
    ratio = speeds[1] / speeds[0]
    print(f"SHA-256: hashlib {speeds[0]:.0f} MiB/s, a set of one part {speeds[1]:.0f} MiB/s")
    print(f"  ratio {ratio:.2f} (at least 0.90); a set of two parts {speeds[2]:.0f} MiB/s")
    return ratio


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
