"""The archives that rarfile's source distribution carries: old RAR generations that no tool writes any more.

They are fetched through pip when the tests run, and kept in pytest's cache; they are not ours to carry.
"""

import fcntl
import importlib.metadata
import io
import re
import shutil
import subprocess
import sys
import tarfile
import warnings

import memory_sets
import platformdirs
import pytest
import rarfile

from worker.domain.listing import Mark

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Volumes after the first belong to it; self-extracting ones have names that are no archive's.
LATER_VOLUME = re.compile(r"\.part[2-9]\.rar$|\.r[0-9][0-9]$|\.exp$|\.sfx$")
FETCH_SECONDS = 100
ENCRYPTED_NAMES = {"rar3-comment-hpsw.rar", "rar5-hpsw.rar"}


def _fetch(version, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    command += ["--retries", "1", "--timeout", "20", "--dest", str(folder), f"rarfile=={version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not fetch rarfile's source distribution within {FETCH_SECONDS} s")
    if done.returncode:
        pytest.skip(f"pip could not fetch rarfile's source distribution: {done.stderr.strip()[-200:]}")


@pytest.fixture(scope="session")
def carried(tmp_path_factory):
    """File name to bytes. Kept in the user's cache: pip makes an environment to look at a source distribution."""
    folder = platformdirs.user_cache_path("archive-fleet", ensure_exists=True)
    version = importlib.metadata.version("rarfile")
    kept = folder / f"rarfile-{version}.tar.gz"
    # Test processes that start together fetch it once.
    with (folder / "rarfile.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            fetched = tmp_path_factory.mktemp("sdist")
            _fetch(version, fetched)
            shutil.move(fetched / kept.name, kept)
    with tarfile.open(kept) as archive:
        members = [member for member in archive if "/test/files/" in member.name and member.isfile()]
        return {member.name.rpartition("/")[2]: archive.extractfile(member).read() for member in members}


def volumes_of(carried, first):
    stem = re.sub(r"(\.part1)?\.rar$", "", first)
    pattern = re.compile(rf"{re.escape(stem)}(\.part[0-9]\.rar|\.rar|\.r[0-9][0-9])$")
    return {name: body for name, body in carried.items() if pattern.fullmatch(name)}


async def test_each_is_read_as_rarfile_reads_it(carried, nursery, tmp_path, record_property, subtests):
    """One test, so that where they cannot be fetched one test is skipped; kept samples cover the same elsewhere."""
    with subtests.test("listings"):
        await each_is_complete_and_lists_what_rarfile_lists(carried, nursery, tmp_path, record_property)
    with subtests.test("checksums and times"):
        await checksums_and_times_agree_with_rarfile(carried, nursery)
    for name in ("rar5-crc.sfx", "rar3-seektest.sfx"):
        with subtests.test(name):
            await a_self_extracting_archive_is_listed_behind_its_program(carried[name], nursery)


async def each_is_complete_and_lists_what_rarfile_lists(carried, nursery, tmp_path, record_property):
    firsts = [name for name in carried if not LATER_VOLUME.search(name)]
    assert len(firsts) > 35
    for first in firsts:
        bodies = volumes_of(carried, first)
        complete, result = await memory_sets.examined(nursery, bodies)
        listing = result.listing
        assert complete, (first, result.completeness)
        assert not listing.marks & {Mark.CORRUPT, Mark.INCOMPLETE, Mark.CRASHED, Mark.MISNAMED}, (
            first,
            listing,
        )
        if first in ENCRYPTED_NAMES:
            assert Mark.ENCRYPTED_NAMES in listing.marks
            continue
        ours = sorted((entry.path.rstrip("/"), entry.size, entry.is_dir) for entry in listing.entries)
        # Without an unpacker rarfile fails on archives with a packed comment; ours must list them still.
        assert ours == (theirs(bodies, first, tmp_path) or ours), first
        assert ours
        record_property("sample-format", "rar of old")


def theirs(bodies, first, folder):
    for name, body in bodies.items():
        (folder / name).write_bytes(body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            archive = rarfile.RarFile(folder / first)
        except rarfile.RarCannotExec:
            return []
    return sorted((info.filename.rstrip("/"), info.file_size, info.is_dir()) for info in archive.infolist())


async def checksums_and_times_agree_with_rarfile(carried, nursery):
    for first in ("rar3-subdirs.rar", "rar5-subdirs.rar", "seektest.rar", "rar5-times.rar", "unicode2.rar"):
        _, result = await memory_sets.examined(nursery, {first: carried[first]})
        infos = {
            info.filename.rstrip("/"): info for info in rarfile.RarFile(io.BytesIO(carried[first])).infolist()
        }
        for entry in result.listing.entries:
            info = infos[entry.path.rstrip("/")]
            assert entry.crc32 == info.CRC
            assert entry.compressed_size == info.compress_size
            assert entry.modified.rstrip("Z") == "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}".format(
                *info.date_time
            )


async def a_self_extracting_archive_is_listed_behind_its_program(body, nursery):
    complete, result = await memory_sets.examined(nursery, {"a.rar": body})
    assert complete
    assert not result.listing.marks
    assert {entry.path for entry in result.listing.entries} == {"stest1.txt", "stest2.txt"}
