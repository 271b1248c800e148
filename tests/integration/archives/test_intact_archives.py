"""Archives of rare but honest making: their own tools accept them, so nothing may call them corrupt."""

import gzip
import io
import struct
import tarfile
import zipfile

import archive_samples as samples
import memory_sets
import pytest
from tar_samples import tar_bytes

from worker.domain.listing import Mark, Unchecked

pytestmark = pytest.mark.asyncio(loop_scope="module")

BLOCK = 512
TREE = {"a.bin": b"a" * 3000, "folder/b.txt": b"b" * 700}


async def listing_of(nursery, name, body):
    _, result = await memory_sets.examined(nursery, {name: body})
    return result.listing


async def assert_intact(nursery, name, body, paths=tuple(TREE)):
    listing = await listing_of(nursery, name, body)
    assert not listing.marks, listing.notes
    assert [entry.path for entry in listing.entries] == list(paths)
    return dict(listing.unchecked)


@pytest.mark.parametrize("system", [14, 19, 128, 255])
async def test_a_gzip_may_come_from_any_system(system, nursery):
    body = bytearray(gzip.compress(tar_bytes(TREE)))
    body[9] = system
    await assert_intact(nursery, "a.tar.gz", bytes(body))


@pytest.mark.parametrize("factor", [1, 3, 7, 20, 63])
async def test_a_tar_may_have_records_of_any_number_of_blocks(factor, nursery):
    bare = tar_bytes(TREE).rstrip(b"\0")
    members = bare + bytes(-len(bare) % BLOCK) + bytes(2 * BLOCK)
    await assert_intact(nursery, "a.tar", members + bytes(-len(members) % (factor * BLOCK)))


async def test_a_tar_that_ends_within_a_block_is_damaged(nursery):
    listing = await listing_of(nursery, "a.tar", tar_bytes(TREE)[:-100])
    assert Mark.CORRUPT in listing.marks


def sparse_tar(segments, size):
    """GNU's sparse format 1.0: a map in text, padded to blocks, and then only what lies between the holes."""
    numbers = [len(segments), *(number for at, data in segments for number in (at, len(data)))]
    sparse_map = b"".join(b"%d\n" % number for number in numbers)
    body = sparse_map + bytes(-len(sparse_map) % BLOCK) + b"".join(data for _, data in segments)
    info = tarfile.TarInfo("GNUSparseFile.0/hole")
    info.size = len(body)
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "hole",
        "GNU.sparse.realsize": str(size),
    }
    out = io.BytesIO()
    with tarfile.TarFile(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(body))
    return out.getvalue()


@pytest.mark.parametrize("count", [2, 200])
async def test_a_sparse_file_in_a_tar_is_listed_with_its_real_size(count, nursery):
    segments = [(number * 4096, b"d" * 512) for number in range(count)] + [(1_000_000, b"end" * 10)]
    body = sparse_tar(segments, 1_000_030)
    unchecked = await assert_intact(nursery, "a.tar", body, ["hole"])
    listing = await listing_of(nursery, "a.tar", body)
    assert listing.entries[0].size == 1_000_030
    # The map has no checksum either.
    assert unchecked[Unchecked.FORMAT] > sum(len(data) for _, data in segments)


async def test_a_window_beyond_the_decoders_limit_is_unsupported_and_not_damage(nursery):
    parameters = samples.zstd.CompressionParameter
    packer = samples.zstd.ZstdCompressor(options={parameters.window_log: 28, parameters.checksum_flag: 1})
    body = packer.compress(tar_bytes(TREE)) + packer.flush()
    listing = await listing_of(nursery, "a.tar.zst", body)
    assert listing.marks == {Mark.UNSUPPORTED}
    assert dict(listing.unchecked)[Unchecked.METHOD] == len(body)


def skipped(data):
    return struct.pack("<2L", 0x184D2A5F, len(data)) + data


@pytest.mark.parametrize("before", [b"", skipped(b"size"), skipped(b"")])
async def test_frames_without_a_checksum_are_unchecked_wherever_they_stand(before, nursery):
    body = tar_bytes(TREE)
    options = {samples.zstd.CompressionParameter.checksum_flag: 1}
    bare = samples.zstd.compress(body[:2048])
    summed = samples.zstd.compress(body[2048:], options=options)
    unchecked = await assert_intact(nursery, "a.tar.zst", before + bare + summed)
    assert unchecked[Unchecked.FORMAT] == len(before + bare + summed)


async def test_of_frames_that_all_have_a_checksum_only_what_is_skipped_is_unchecked(nursery):
    body = tar_bytes(TREE)
    options = {samples.zstd.CompressionParameter.checksum_flag: 1}
    frames = [samples.zstd.compress(piece, options=options) for piece in (body[:2048], body[2048:])]
    unchecked = await assert_intact(nursery, "a.tar.zst", b"".join(skipped(b"size") + f for f in frames))
    assert unchecked[Unchecked.STRAY] == 2 * len(skipped(b"size"))
    assert Unchecked.FORMAT not in unchecked


async def test_a_zip_may_be_followed_by_bytes_that_are_none_of_its_own(nursery):
    unchecked = await assert_intact(nursery, "a.zip", samples.zip_bytes(TREE) + b"\r\n")
    assert unchecked[Unchecked.STRAY] == 2


async def test_the_end_of_a_zip_within_a_zip_is_not_taken_for_the_end_of_the_lost_one(nursery):
    inner = samples.zip_bytes(TREE)
    outer = samples.zip_bytes({"inner.zip": inner, "more": b"m" * 999}, zipfile.ZIP_STORED)
    listing = await listing_of(nursery, "a.zip", outer[: outer.index(b"mmm")])
    assert Mark.CORRUPT in listing.marks


def with_local_time(body, date, time):
    return body[:10] + struct.pack("<2H", time, date) + body[14:]


async def test_a_local_header_may_name_another_moment(nursery):
    unchecked = await assert_intact(nursery, "a.zip", samples.zip_bytes(TREE))
    other = await assert_intact(nursery, "a.zip", with_local_time(samples.zip_bytes(TREE), 0x21, 0))
    assert other[Unchecked.FIELDS] == unchecked[Unchecked.FIELDS] + 4


async def test_moments_that_are_one_bit_apart_are_damage(nursery):
    body = samples.zip_bytes(TREE)
    time, date = struct.unpack("<2H", body[10:14])
    listing = await listing_of(nursery, "a.zip", with_local_time(body, date, time ^ 0x400))
    assert Mark.CORRUPT in listing.marks


async def test_in_a_set_of_parts_a_member_of_another_moment_may_be_another_archives(nursery):
    body = with_local_time(samples.zip_bytes(), 0x21, 0)
    half = len(body) // 2
    complete, _ = await memory_sets.examined(nursery, {"a.zip.001": body[:half], "a.zip.002": body[half:]})
    assert not complete
