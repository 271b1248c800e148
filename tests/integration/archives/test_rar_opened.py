"""Packed members of a RAR on the disk: opened by rarfile and the program that is there, inside its confinement."""

import contextlib
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import archive_samples as samples
import archive_tools
import memory_sets
import pytest
import pytest_asyncio
import rarfile
from skip_report import lacking

from worker.archives import rar_opener, rar_tool
from worker.archives.nursery import Nursery
from worker.archives.reader import FileReader, Part, SetBytes
from worker.domain.listing import LOCAL, Mark, Unchecked

pytestmark = pytest.mark.asyncio(loop_scope="module")
PACKED = [
    "rar4_tool_normal", "rar5_tool_best", "rar4_tool_solid", "rar5_tool_solid", "rar4_tool_volumes",
    "rar5_tool_solid_volumes", "rar4_tool_volumes_old_names", "rar4_tool_links",
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opening():
    """Parsers that find the program of the wheel."""
    program = archive_tools.program("7zz")
    if program is None:
        lacking("7zz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(program).parent}:{os.environ['PATH']}")
        async with Nursery() as nursery:
            if (await nursery.confinement()).tool is None:
                lacking("7zz")
            yield nursery


@contextlib.contextmanager
def on_disk(files):
    """The set that these files form, read from where they lie."""
    _, archive = memory_sets.set_of({file.name: file.read_bytes() for file in files})
    places = {file.name: file for file in files}
    with contextlib.ExitStack() as stack:
        parts = tuple(
            Part(part.name, stack.enter_context(FileReader(places[part.name]))) for part in archive.parts
        )
        yield SetBytes(archive.format, archive.scheme, parts, archive.indices)


@pytest.mark.parametrize("name", PACKED)
async def test_every_packed_member_is_compared_with_its_checksum_and_a_picture_is_found(
    name, opening, tmp_path
):
    with on_disk(samples.build(name, tmp_path).files) as archive:
        listing = (await opening.examine(archive, LOCAL)).listing
        preview = await opening.preview(archive, LOCAL)
    assert not listing.marks & {Mark.CORRUPT, Mark.INCOMPLETE}
    # What is left are recovery records and comments, which are no members.
    assert dict(listing.unchecked).get(Unchecked.METHOD, 0) < 8000
    assert preview.path == "folder/deep/er/cover.jpg"


async def test_damage_in_a_packed_member_is_found(opening, tmp_path):
    sample = samples.build("rar5_tool_best", tmp_path)
    (file,) = sample.files
    members = [each for each in rarfile.RarFile(file).infolist() if each.compress_type != rarfile.RAR_M0]
    member = max(members, key=lambda each: each.compress_size)
    body = bytearray(file.read_bytes())
    body[member.data_offset + member.compress_size // 2] ^= 0xFF
    file.write_bytes(body)
    with on_disk([file]) as archive:
        listing = (await opening.examine(archive, LOCAL)).listing
    assert Mark.CORRUPT in listing.marks


async def test_nothing_is_left_on_the_disk(opening, tmp_path, monkeypatch):
    sample = samples.build("rar5_tool_volumes", tmp_path / "in")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with on_disk(sample.files) as archive:
        await opening.examine(archive, LOCAL)
    assert list((tmp_path / "temporary").iterdir()) == []


async def test_a_rar_that_is_not_on_the_disk_says_what_was_not_checked(opening, tmp_path):
    sample = samples.build("rar5_tool_best", tmp_path)
    _, archive = memory_sets.set_of({file.name: file.read_bytes() for file in sample.files})
    listing = (await opening.examine(archive, LOCAL)).listing
    assert dict(listing.unchecked)[Unchecked.METHOD] > 0
    assert Mark.CORRUPT not in listing.marks


@pytest.mark.parametrize("kind", ["slices", "behind a program"])
async def test_what_rarfile_cannot_open_within_the_rules_says_what_was_not_checked(kind, opening, tmp_path):
    """One file cut into slices would have to be put together on the disk; a program's end is no volume to it."""
    name = "rar5_tool_best" if kind == "slices" else "rar5_tool_self_extracting"
    (file,) = samples.build(name, tmp_path).files
    files = [file]
    if kind == "slices":
        body = file.read_bytes()
        files = [tmp_path / "b.rar.001", tmp_path / "b.rar.002"]
        for path, piece in zip(files, (body[:5000], body[5000:]), strict=True):
            path.write_bytes(piece)
    with on_disk(files) as archive:
        listing = (await opening.examine(archive, LOCAL)).listing
    assert dict(listing.unchecked)[Unchecked.METHOD] > 0
    assert not listing.marks & {Mark.CORRUPT, Mark.INCOMPLETE}


async def test_a_program_that_cannot_be_started_says_nothing_about_the_archive(tmp_path):
    sample = samples.build("rar5_tool_best", tmp_path)
    broken = rar_tool.Tool("7zz", str(tmp_path / "no such program"), takes_volumes=True)
    archive = rarfile.RarFile(sample.files[0])
    members = [
        rar_opener.Member(each.file_size, each.CRC)
        for each in archive.infolist()
        if each.is_file() and each.compress_type != rarfile.RAR_M0
    ]
    with rar_opener.opener(broken, [str(sample.files[0])], LOCAL) as opened:
        assert opened.hold(members, 10.0) is None
        assert opened.read(members, 0) == b""


@pytest.mark.parametrize("name", ["a*.txt", "a?", "[a]", "@list", "-switch", "back\\slash"])
async def test_a_name_that_a_program_takes_for_a_pattern_a_list_or_an_option_is_not_given_to_it(name):
    def member(called):
        return SimpleNamespace(
            filename=called,
            file_redir=None,
            compress_type=0x33,
            is_file=lambda: True,
            needs_password=lambda: False,
        )

    def archive(*names):
        return SimpleNamespace(infolist=lambda: [member(each) for each in names])

    assert len(rar_opener._packed(archive("b", "c"))) == 2
    assert rar_opener._packed(archive("b", name)) is None
    assert rar_opener._packed(archive("b", "b")) is None
