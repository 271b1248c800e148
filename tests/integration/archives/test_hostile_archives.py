"""Whatever the bytes are: a mark, in time, within memory, and the parsing process lives on."""

import asyncio
import errno
import gzip
import io
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import archive_samples as samples
import memory_sets
import psutil
import pytest
import rar_writer
from hang_guard import HANG_SECONDS

from worker.archives import landlock
from worker.archives.nursery import Nursery
from worker.domain.listing import Limits, Mark
from worker.errors import RetryableError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def marks_of(nursery, name, body, limits=memory_sets.QUICK):
    _, result = await memory_sets.examined(nursery, {name: body}, limits)
    return result.listing.marks


def many_entries(count):
    """Every record points at the same empty member, so the file is little more than its directory."""
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 0x5821, 0, 0, 0, 1, 0) + b"x"
    head = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 0x5821, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0)
    directory = b"".join(head + b"%07d" % number for number in range(count))
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(directory), len(local))
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(local) + len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return local + directory + end64 + locator + end


async def test_p13_of_a_million_entries_the_first_are_listed_and_all_are_counted(nursery):
    limits = Limits(wall_seconds=HANG_SECONDS)
    _, result = await memory_sets.examined(nursery, {"a.zip": many_entries(1_000_000)}, limits)
    assert result.listing.entry_count == 1_000_000
    assert len(result.listing.entries) == limits.entries
    assert Mark.TRUNCATED in result.listing.marks


async def test_p13_long_names_end_the_listing_before_they_fill_memory(nursery):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(60):
            archive.writestr(f"{number:03d}" + "n" * 60_000, b"")
    _, result = await memory_sets.examined(nursery, {"a.zip": out.getvalue()}, Limits(output_bytes=3_000_000))
    assert Mark.TRUNCATED in result.listing.marks
    assert result.listing.entry_count == 60
    assert 0 < len(result.listing.entries) < 60


async def test_p13_a_bomb_is_called_one(nursery):
    body = bytearray(samples.zip_bytes({"zeros": b"x"}))
    at = body.index(b"PK\1\2")
    body[at + 24 : at + 28] = struct.pack("<L", 0xFFFFFFF0)
    assert Mark.BOMB in await marks_of(nursery, "a.zip", bytes(body))


async def test_p13_overlapping_members_are_called_a_bomb(nursery):
    """Many records for the same bytes."""
    kernel = samples.zip_bytes({"kernel": b"k" * 50_000}, zipfile.ZIP_STORED)
    at = kernel.index(b"PK\1\2")
    end = kernel.index(b"PK\5\6")
    record = kernel[at:end]
    directory = record * 30
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 30, 30, len(directory), at, 0)
    assert Mark.BOMB in await marks_of(nursery, "a.zip", kernel[:at] + directory + tail)


@pytest.mark.parametrize(
    "path", ["../up.txt", "/root.txt", "C:\\x.txt", "a/../../b", "bad\u202etxt.exe", "tab\there"]
)
async def test_p13_traversal_and_trick_names_are_listed_and_marked(path, nursery):
    _, result = await memory_sets.examined(nursery, {"a.zip": samples.zip_bytes({path: b"x"})})
    assert result.listing.entries[0].path == path
    assert Mark.UNSAFE_PATHS in result.listing.marks


async def test_p13_links_are_marked(nursery):
    out = io.BytesIO()
    with tarfile.TarFile(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    assert Mark.LINKS in await marks_of(nursery, "a.tar", out.getvalue())


async def test_p13_names_that_are_not_utf8_are_never_dropped(nursery):
    raw = bytes(range(0x80, 0x100))
    body = samples.zip_bytes({"n" * len(raw): b"x"}).replace(b"n" * len(raw), raw)
    at = body.index(b"PK\1\2")
    body = body[: at + 9] + b"\x08" + body[at + 10 :]  # claims UTF-8
    _, result = await memory_sets.examined(nursery, {"a.zip": body})
    assert result.listing.entries[0].path == raw.decode("cp437")


async def test_a_file_that_is_another_archive_is_listed_as_what_it_is(nursery):
    _, result = await memory_sets.examined(nursery, {"a.zip": rar_writer.rar5(samples.TREE)[0]})
    assert result.listing.format == "rar"
    assert Mark.MISNAMED in result.listing.marks
    assert len(result.listing.entries) == len(samples.TREE)


@pytest.mark.parametrize(
    "name", ["a.zip", "a.rar", "a.7z", "a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.tar.zst"]
)
@pytest.mark.parametrize(
    "body",
    [
        b"x",
        b"just some text, no archive\n" * 50,
        b"<!DOCTYPE html><html>404</html>",
        b"\0" * 100,
        b"\xff" * 5_000,
        samples.TREE["folder/deep/er/cover.jpg"],
    ],
)
async def test_a_file_that_is_no_archive_at_all_is_not_what_its_name_says(name, body, nursery):
    assert await marks_of(nursery, name, body) == {Mark.MISNAMED}


async def test_an_archive_that_lost_its_end_is_damaged_and_still_what_its_name_says(nursery):
    assert await marks_of(nursery, "a.zip", samples.zip_bytes()[:1000]) == {Mark.CORRUPT}
    assert await marks_of(nursery, "a.rar", rar_writer.rar5(samples.TREE)[0][:20]) == {Mark.CORRUPT}


async def test_a_later_slice_by_itself_is_not_said_to_be_misnamed(nursery):
    body = samples.zip_bytes()
    assert await marks_of(nursery, "a.zip.002", body[50_000:60_000]) == {Mark.INCOMPLETE}


async def test_lying_headers_end_with_a_mark(nursery):
    endless = rar_writer.MAGIC5 + rar_writer.main5() + rar_writer.block5(2, 2, b"", data_size=2**62)
    assert Mark.CORRUPT in await marks_of(nursery, "a.rar", endless)
    start = struct.pack("<QQL", 2**60, 2**60, 0)
    sevenzip = b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<L", zlib.crc32(start)) + start
    assert Mark.CORRUPT in await marks_of(nursery, "a.7z", sevenzip)
    info = tarfile.TarInfo("x")
    info.size = 2**60
    assert Mark.CORRUPT in await marks_of(nursery, "a.tar", info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    cyclic = bytearray(samples.zip_bytes({"a": b"x"}))
    at = cyclic.index(b"PK\1\2")
    cyclic[at + 42 : at + 46] = struct.pack("<L", at)  # the member begins in the directory itself
    assert Mark.CORRUPT in await marks_of(nursery, "a.zip", bytes(cyclic))


def zeros_gz(megabytes):
    """Concatenated gzip members are one stream."""
    return gzip.compress(bytes(16 * 2**20), 9) * (megabytes // 16)


async def test_p13_a_stream_that_takes_too_long_is_cut_off_and_marked(nursery):
    info = tarfile.TarInfo("zeros")
    info.size = 200 * 2**30
    body = gzip.compress(info.tobuf(tarfile.GNU_FORMAT)) + zeros_gz(16 * 1024)
    assert await marks_of(nursery, "a.tar.gz", body, Limits(wall_seconds=0.5)) == {Mark.TIME_LIMIT}
    assert await marks_of(nursery, "a.tar.gz", body, Limits(cpu_seconds=1)) == {Mark.TIME_LIMIT}


async def test_p5_a_single_file_is_complete_as_posted_even_if_it_kills_its_parser(nursery):
    body = gzip.compress(tarfile.TarInfo("x").tobuf(tarfile.GNU_FORMAT)) + zeros_gz(16 * 1024)
    complete, result = await memory_sets.examined(nursery, {"a.tar.gz": body}, Limits(wall_seconds=0.5))
    assert complete
    assert Mark.TIME_LIMIT in result.listing.marks


async def test_p13_a_header_that_wants_all_memory_is_cut_off_and_marked(nursery):
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 700 * 2**20
    body = gzip.compress(info.tobuf(tarfile.GNU_FORMAT)) + zeros_gz(704)
    marks = await marks_of(nursery, "a.tar.gz", body, Limits(memory=384 * 2**20))
    assert marks & {Mark.MEMORY_LIMIT}


async def test_a_confined_process_can_open_no_file_and_no_socket():
    script = (
        "import socket\n"
        "from worker.archives.confinement import confine_parser\n"
        "from worker.domain.listing import Limits\n"
        "confine_parser(Limits())\n"
        "for attempt in (lambda: open('/etc/hostname'), lambda: open('written', 'w'), socket.socket):\n"
        "    try:\n"
        "        attempt()\n"
        "    except OSError as error:\n"
        "        print(error.errno)\n"
    )
    command = [sys.executable, "-c", script]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["24", "24", "1"]


CHANGES = """
import os
import sys
from worker.archives.confinement import confine_opener, confine_parser
from worker.domain.listing import Limits
open("old", "w").close()
confine_parser(Limits()) if sys.argv[1] == "parser" else confine_opener(Limits(), ())
changes = (
    lambda: os.mkdir("new"),
    lambda: os.unlink("old"),
    lambda: os.symlink("old", "new"),
    lambda: os.link("old", "new"),
    lambda: os.rename("old", "new"),
    lambda: os.truncate("old", 1),
    lambda: os.mkfifo("new"),
)
for change in changes:
    try:
        change()
    except OSError as error:
        print(error.errno)
"""


def run_python(folder, *arguments):
    command = [sys.executable, "-c", *arguments]
    root = Path(landlock.__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env={"PYTHONPATH": str(root)}
    )
    return done.stdout.split()


@pytest.mark.parametrize("confined", ["parser", "opener"])
async def test_a_confined_process_can_make_and_remove_no_file(confined, tmp_path):
    ask = "from worker.archives.landlock import restrict; print(restrict())"
    if await asyncio.to_thread(run_python, tmp_path, ask) == ["False"]:
        pytest.skip("the kernel has no Landlock")
    assert await asyncio.to_thread(run_python, tmp_path, CHANGES, confined) == [str(errno.EACCES)] * 7
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


async def test_cancelling_a_job_ends_its_child():
    asked, never = asyncio.Event(), asyncio.Event()

    class Stuck:
        size = 1000

        async def read_at(self, offset, length):
            asked.set()
            await never.wait()
            return b""

    async with Nursery() as nursery:
        _, archive = memory_sets.set_of({"a.zip": b"x" * 1000})
        stuck = memory_sets.SetBytes(
            archive.format, archive.scheme, (memory_sets.Part("a.zip", Stuck()),), archive.indices
        )
        job = asyncio.create_task(nursery.examine(stuck))
        await asked.wait()
        (child,) = psutil.Process(nursery._process.pid).children()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        gone, alive = await asyncio.to_thread(psutil.wait_procs, [child], 10)
        assert gone
        assert not alive
        complete, _ = await memory_sets.examined(nursery, {"a.zip": samples.zip_bytes()})
        assert complete


@pytest.mark.parametrize("failure", [ConnectionResetError, TimeoutError, ValueError])
async def test_a_reader_that_fails_is_an_error_and_not_a_mark(failure, nursery):
    class Broken:
        size = 1000

        async def read_at(self, offset, length):
            raise failure("the network went away")

    _, archive = memory_sets.set_of({"a.zip": b"x" * 1000})
    broken = memory_sets.SetBytes(
        archive.format, archive.scheme, (memory_sets.Part("a.zip", Broken()),), archive.indices
    )
    with pytest.raises(failure, match="went away"):
        await nursery.examine(broken)


async def test_a_killed_nursery_is_started_anew():
    async with Nursery() as nursery:
        await memory_sets.examined(nursery, {"a.zip": samples.zip_bytes()})
        nursery._process.kill()
        await nursery._process.wait()
        complete, _ = await memory_sets.examined(nursery, {"a.zip": samples.zip_bytes()})
        assert complete


@pytest.mark.parametrize("task", ["prove", "examine", "preview", "thumbnail"])
async def test_parsers_that_are_killed_at_work_say_nothing_about_the_archive(task):
    class Kills(memory_sets.BytesReader):
        async def read_at(self, offset, length):
            children = psutil.Process(nursery._process.pid).children()
            for process in (nursery._process, *children):
                process.kill()
            return await super().read_at(offset, length)

    async with Nursery() as nursery:
        _, archive = memory_sets.set_of({"a.zip": samples.zip_bytes()})
        parts = (memory_sets.Part("a.zip", Kills(samples.zip_bytes())),)
        killed = memory_sets.SetBytes(archive.format, archive.scheme, parts, archive.indices)
        with pytest.raises(RetryableError, match="the parser process is gone"):
            await nursery._run(task, killed, memory_sets.QUICK)


async def test_closing_the_nursery_leaves_no_process_behind():
    async with Nursery() as nursery:
        await memory_sets.examined(nursery, {"a.zip": samples.zip_bytes()})
        process = psutil.Process(nursery._process.pid)
    assert not process.is_running()
