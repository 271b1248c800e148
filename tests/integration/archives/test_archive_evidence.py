"""What a proof rests on, part by part, and how damage is told from a part of another archive."""

import io
import lzma
import random
import zipfile
import zlib

import archive_samples as samples
import memory_sets
import py7zr
import pytest
import rar_writer

from worker.archives import nursery as nursery_module
from worker.archives.nursery import Nursery
from worker.archives.reader import BytesReader, Part, SetBytes
from worker.domain.archive_name import ArchiveFormat, Scheme
from worker.domain.listing import LOCAL, Evidence, Limits, Mark
from worker.errors import RetryableError

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOM = 50_000


def noise(seed, size=300_000):
    return random.Random(seed).randbytes(size)


def slices(name, body):
    pieces = [body[at : at + ROOM] for at in range(0, len(body), ROOM)]
    return {f"{name}.{number:03d}": piece for number, piece in enumerate(pieces, start=1)}


def sevenzip(seed):
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]) as archive:
        archive.writestr(noise(seed), "noise.bin")
    return slices("a.7z", out.getvalue())


def stored_zip(seed):
    return slices("a.zip", samples.zip_bytes({"noise.bin": noise(seed)}, zipfile.ZIP_STORED))


def stored_rar(seed):
    return slices("a.rar", rar_writer.rar5({"noise.bin": noise(seed)})[0])


def rar_volumes(seed):
    bodies = rar_writer.rar5({"noise.bin": noise(seed)}, ROOM)
    return {f"a.part{number}.rar": body for number, body in enumerate(bodies, start=1)}


SLICED = [sevenzip, stored_zip, stored_rar]


async def proven(nursery, bodies, limits=LOCAL):
    _, archive = memory_sets.set_of(bodies)
    return await nursery.prove(archive, limits)


@pytest.mark.parametrize("make", SLICED)
async def test_slices_between_the_headers_are_proven_by_their_contents(make, nursery):
    found = await proven(nursery, make(1))
    assert found.complete
    assert found.evidence[0] is found.evidence[-1] is Evidence.HEADERS
    assert set(found.evidence[1:-1]) == {Evidence.CONTENTS}
    assert found.unproven == ()


@pytest.mark.parametrize("make", SLICED)
async def test_where_contents_may_not_be_read_the_slices_between_are_said_to_be_unproven(make, nursery):
    bodies = make(1)
    found = await proven(nursery, bodies, Limits(prove_bytes=0))
    assert found.complete
    assert found.unproven == tuple(range(1, len(bodies) - 1))


@pytest.mark.parametrize("make", [*SLICED, rar_volumes])
async def test_a_part_of_another_archive_of_the_same_shape_is_found_in_every_place(make, nursery):
    """Same names, same sizes, same headers as far as headers go: only the contents differ."""
    bodies, others = make(1), make(2)
    for part in bodies:
        if len(others[part]) == len(bodies[part]) and others[part] != bodies[part]:
            found = await proven(nursery, {**bodies, part: others[part]})
            assert not found.complete, part


async def test_volumes_are_proven_by_the_member_that_runs_through_them(nursery):
    found = await proven(nursery, rar_volumes(1), Limits(prove_bytes=0))
    assert found.complete
    assert set(found.evidence) == {Evidence.HEADERS}


async def test_volumes_that_nothing_ties_together_are_unproven(nursery):
    """Each member ends with its volume, so that only the numbers speak."""
    bodies = {}
    for number in range(3):
        data = noise(number)
        member = rar_writer.file5(rar_writer.Piece(f"{number}.bin", data, len(data), zlib.crc32(data)))
        end = rar_writer.end5(more=number < 2)
        bodies[f"a.part{number + 1}.rar"] = rar_writer.MAGIC5 + rar_writer.main5(number) + member + end
    found = await proven(nursery, bodies)
    assert found.complete
    assert found.unproven == (0, 1, 2)


async def test_p13_a_damaged_volume_in_its_place_is_damage_and_the_set_is_complete(nursery):
    bodies = rar_volumes(1)
    damaged = bytearray(bodies["a.part2.rar"])
    damaged[ROOM // 2] ^= 1
    complete, result = await memory_sets.examined(nursery, {**bodies, "a.part2.rar": bytes(damaged)})
    assert complete
    assert result.listing.marks == {Mark.CORRUPT}


async def test_p5_a_damaged_slice_may_be_another_archives_and_the_set_is_not_complete(nursery):
    bodies = sevenzip(1)
    damaged = bytearray(bodies["a.7z.002"])
    damaged[ROOM // 2] ^= 1
    complete, result = await memory_sets.examined(nursery, {**bodies, "a.7z.002": bytes(damaged)})
    assert not complete
    assert Mark.INCOMPLETE in result.listing.marks


async def test_a_proof_of_volumes_on_a_server_reads_kilobytes(nursery):
    class Counted(BytesReader):
        taken = 0

        async def read_at(self, offset, length):
            Counted.taken += length
            return await super().read_at(offset, length)

    bodies = rar_writer.rar5({"noise.bin": noise(1, 20 * 2**20)}, 4 * 2**20)
    parts = tuple(Part(f"a.part{number}.rar", Counted(body)) for number, body in enumerate(bodies, start=1))
    archive = SetBytes(ArchiveFormat.RAR, Scheme.RAR_PARTS, parts, tuple(range(len(parts))))
    found = await nursery.prove(archive, Limits(prove_bytes=0))
    assert found.complete
    assert Counted.taken < 64 * 1024 * len(parts)


async def test_parsers_that_do_not_start_are_an_error_to_retry_and_not_a_mark(monkeypatch):
    monkeypatch.setattr(nursery_module, "_START", "import sys; sys.exit(3)")
    _, archive = memory_sets.set_of({"a.zip": samples.zip_bytes()})
    async with Nursery() as opened:
        with pytest.raises(RetryableError, match="does not start"):
            await opened.examine(archive)
        monkeypatch.undo()
        assert (await opened.examine(archive)).completeness.complete


async def test_what_was_compared_with_nothing_is_counted_by_reason(nursery):
    _, result = await memory_sets.examined(
        nursery, {"a.zip": samples.zip_bytes()}, Limits(verify_bytes=10_000)
    )
    assert not result.listing.marks
    unchecked = {reason.name: size for reason, size in result.listing.unchecked}
    assert unchecked["BOUND"] >= len(samples.TREE["folder/noise.bin"])
