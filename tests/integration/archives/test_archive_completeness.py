"""A set with a missing, doubled or foreign part is never called complete."""

import random
import re
from itertools import pairwise

import archive_samples as samples
import memory_sets
import pytest
import rar_writer

from worker.archives.reader import BytesReader, FileReader, Part, SetBytes
from worker.domain.archive_name import LAST, ArchiveFormat, Scheme
from worker.domain.listing import Limits, Mark

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER_TREE = {
    "readme.txt": b"other\n" * 40,
    "folder/": b"",
    "folder/noise.bin": random.Random(8).randbytes(150_000),
    "folder/more.bin": random.Random(9).randbytes(9_000),
}
MULTI_PART = [
    name for name, maker in samples.MAKERS.items() if re.search("volumes|slices|spanned", maker.format)
]


def bodies_of(sample):
    return {file.name: file.read_bytes() for file in sample.files}


def in_order(bodies):
    found, _ = memory_sets.set_of(bodies)
    return [part.file_name for part in found.parts]


@pytest.mark.parametrize("name", MULTI_PART)
async def test_p5_a_set_with_any_part_missing_is_not_complete(name, tmp_path, nursery):
    bodies = bodies_of(samples.build(name, tmp_path))
    complete, _ = await memory_sets.examined(nursery, bodies)
    assert complete
    for absent in bodies:
        rest = {part: body for part, body in bodies.items() if part != absent}
        complete, result = await memory_sets.examined(nursery, rest)
        assert not complete, absent
        assert Mark.CRASHED not in result.listing.marks


@pytest.mark.parametrize("name", [name for name in MULTI_PART if "encrypted" not in name])
async def test_p5_a_missing_last_part_is_named(name, tmp_path, nursery):
    bodies = bodies_of(samples.build(name, tmp_path))
    ordered = in_order(bodies)
    # In a spanned zip the last part is the one that tells how many there are.
    absent = ordered[0] if "spanned" in name else ordered[-1]
    rest = {part: body for part, body in bodies.items() if part != absent}
    found, archive = memory_sets.set_of(rest)
    completeness = await nursery.prove(archive)
    missing = {*found.missing, *(found.name_of(index) for index in completeness.missing)}
    assert absent.casefold() in {part.casefold() for part in missing}


@pytest.mark.parametrize("name", MULTI_PART)
async def test_a_set_with_a_doubled_part_is_not_complete(name, tmp_path, nursery):
    """The bytes of one part under the name of its neighbour, or once more at the end."""
    bodies = bodies_of(samples.build(name, tmp_path))
    ordered = in_order(bodies)
    for left, right in pairwise(ordered):
        complete, _ = await memory_sets.examined(nursery, {**bodies, right: bodies[left]})
        assert not complete or bodies[left] == bodies[right], (left, right)
    if "spanned" not in name:
        found, _ = memory_sets.set_of(bodies)
        one_more = found.name_of(len(ordered))
        complete, _ = await memory_sets.examined(nursery, {**bodies, one_more: bodies[ordered[-1]]})
        assert not complete


FOREIGN = {
    "rar4_part_volumes": lambda: rar_writer.rar4(OTHER_TREE, 60_000, new_names=True),
    "rar5_part_volumes": lambda: rar_writer.rar5(OTHER_TREE, 60_000),
    "zip_spanned": lambda: samples.spanned_zip(OTHER_TREE, 80_000),
    "zip_numbered": lambda: _slices(samples.zip_bytes(OTHER_TREE)),
    "rar5_numbered": lambda: _slices(rar_writer.rar5(OTHER_TREE)[0]),
}


def _slices(body):
    return [body[at : at + 50_000] for at in range(0, len(body), 50_000)]


@pytest.mark.parametrize("name", FOREIGN)
async def test_a_set_with_a_part_of_another_archive_is_not_complete(name, tmp_path, nursery):
    bodies = bodies_of(samples.build(name, tmp_path))
    for part, stranger in zip(in_order(bodies), FOREIGN[name](), strict=False):
        complete, _ = await memory_sets.examined(nursery, {**bodies, part: stranger})
        assert not complete, part


async def test_p5_a_first_volume_posted_alone_says_what_is_missing(nursery):
    found, archive = memory_sets.set_of({"a.rar": rar_writer.rar4(samples.TREE, 60_000)[0]})
    completeness = await nursery.prove(archive)
    assert not completeness.complete
    assert [found.name_of(index) for index in completeness.missing] == ["a.r00"]


async def test_p5_the_last_disk_of_a_zip_posted_alone_says_what_is_missing(nursery):
    found, archive = memory_sets.set_of({"a.zip": samples.spanned_zip(samples.TREE, 80_000)[-1]})
    completeness = await nursery.prove(archive)
    assert [found.name_of(index) for index in completeness.missing] == ["a.z01", "a.z02"]


class Counted(BytesReader):
    asked = 0

    async def read_at(self, offset, length):
        self.asked += 1
        return await super().read_at(offset, length)


async def test_a_proof_of_a_single_zip_takes_two_round_trips(nursery):
    """Its beginning, to see that it is one, and its end, where the number of disks stands."""
    reader = Counted(samples.zip_bytes({"noise.bin": random.Random(1).randbytes(300_000)}))
    archive = SetBytes(ArchiveFormat.ZIP, Scheme.SINGLE, (Part("a.zip", reader),), (LAST,))
    assert (await nursery.prove(archive)).complete
    assert reader.asked == 2


@pytest.mark.parametrize("name", [name for name in samples.MAKERS if "sparse" in name])
async def test_a_proof_takes_kilobytes_of_gigabytes(name, tmp_path, nursery):
    sample = samples.build(name, tmp_path)
    _, archive = memory_sets.set_of({sample.files[0].name: b""})

    class Counting(FileReader):
        taken = 0

        async def read_at(self, offset, length):
            self.taken += length
            return await super().read_at(offset, length)

    with Counting(sample.files[0]) as reader:
        archive = memory_sets.SetBytes(archive.format, archive.scheme, (Part("a", reader),), archive.indices)
        assert (await nursery.prove(archive)).complete
        await nursery.examine(archive, Limits(verify_bytes=0))
        assert reader.taken < 512 * 1024
