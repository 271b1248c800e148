"""What zip files of odd but honest making hold."""

import struct
import zlib

import archive_samples as samples
import memory_sets
import pytest

from worker.domain.listing import Mark

pytestmark = pytest.mark.asyncio(loop_scope="module")


def one_member(name, *, extra=b"", flags=0, made_on=0):
    """A zip of one empty member, spelled out."""
    common = (20, flags, 0, 0x6000, 0x5869, 0, 0, 0, len(name), len(extra))
    local = struct.pack("<4s5H3L2H", b"PK\3\4", *common) + name + extra
    record = struct.pack("<4s6H3L5H2L", b"PK\1\2", made_on << 8 | 20, *common, 0, 0, 0, 0, 0) + name + extra
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(record), len(local), 0)
    return local + record + end


async def path_in(nursery, body):
    _, result = await memory_sets.examined(nursery, {"a.zip": body})
    assert not result.listing.marks - {Mark.UNSAFE_PATHS}
    (entry,) = result.listing.entries
    return entry.path


async def test_a_unicode_path_field_beats_the_plain_name(nursery):
    plain, unicode = b"???.txt", "写真集.txt".encode()
    field = struct.pack("<BL", 1, zlib.crc32(plain)) + unicode
    extra = struct.pack("<2H", 0x7075, len(field)) + field
    assert await path_in(nursery, one_member(plain, extra=extra)) == "写真集.txt"


async def test_a_unicode_path_field_for_another_name_is_not_believed(nursery):
    field = struct.pack("<BL", 1, 12345) + b"evil.txt"
    extra = struct.pack("<2H", 0x7075, len(field)) + field
    assert await path_in(nursery, one_member(b"caf\x82", extra=extra)) == "café"


async def test_the_utf8_flag_and_unix_tools_mean_utf8_and_dos_means_cp437(nursery):
    assert await path_in(nursery, one_member("é".encode(), flags=0x800)) == "é"
    assert await path_in(nursery, one_member("é".encode(), made_on=3)) == "é"
    assert await path_in(nursery, one_member(b"\x82", made_on=0)) == "é"
    assert await path_in(nursery, one_member(b"\x82", made_on=3)) == "é"


async def test_a_name_with_a_nul_can_be_stored(nursery):
    assert await path_in(nursery, one_member(b"a\0b")) == "a\ufffdb"


async def test_a_program_in_front_of_a_zip_is_no_damage(nursery):
    complete, result = await memory_sets.examined(
        nursery, {"a.zip": b"MZ program" * 100 + samples.zip_bytes()}
    )
    assert complete
    assert not result.listing.marks
    assert len(result.listing.entries) == len(samples.TREE)


async def test_bytes_missing_in_front_of_a_zip_are_noticed(nursery):
    _, result = await memory_sets.examined(nursery, {"a.zip": samples.zip_bytes()[1000:]})
    assert Mark.CORRUPT in result.listing.marks
    assert len(result.listing.entries) == len(samples.TREE)


async def test_a_spanned_zip_whose_end_record_lies_about_the_size_of_the_directory_is_damaged(nursery):
    disks = samples.spanned_zip(samples.TREE, 80_000)
    size_at = len(disks[-1]) - 10
    for bit in range(32):
        last = bytearray(disks[-1])
        last[size_at + bit // 8] ^= 1 << bit % 8
        bodies = {"a.z01": disks[0], "a.z02": disks[1], "a.zip": bytes(last)}
        complete, result = await memory_sets.examined(nursery, bodies)
        assert Mark.CORRUPT in result.listing.marks or not complete, bit
