import pytest

from worker.sandbox.upload_rules import KIB, MIB, file_refusal, part_refusal, range_refusal

PART = 512 * KIB


@pytest.mark.parametrize(
    ("part", "size", "total", "known", "refusal"),
    [
        (0, PART, 3, None, ""),
        (2, 5, 3, PART, ""),
        (2, PART, 3, PART, ""),
        (0, 5, 1, None, ""),
        (0, 0, 3, None, "FILE_PART_EMPTY"),
        (0, PART + 1, 3, None, "FILE_PART_TOO_BIG"),
        (0, 5, 3, None, "FILE_PART_SIZE_INVALID"),
        (0, 384 * KIB, 3, None, "FILE_PART_SIZE_INVALID"),
        (1, PART // 2, 3, PART, "FILE_PART_SIZE_CHANGED"),
        (2, PART, 3, PART // 2, "FILE_PART_SIZE_CHANGED"),
        (-1, PART, 3, None, "FILE_PART_INVALID"),
        (3, PART, 3, None, "FILE_PART_INVALID"),
        (0, PART, 4001, None, "FILE_PARTS_INVALID"),
        (0, PART, 0, None, "FILE_PARTS_INVALID"),
        (4000, PART, None, None, "FILE_PART_INVALID"),
    ],
)
def test_a_part_is_judged_by_its_number_and_size(part, size, total, known, refusal):
    assert part_refusal(part, size, limit=4000, total=total, known=known) == refusal


@pytest.mark.parametrize(
    ("parts", "count", "big", "refusal"),
    [
        ({0: PART, 1: 7}, 2, True, ""),
        ({0: 7}, 1, False, ""),
        ({1: PART}, 2, True, "FILE_PART_0_MISSING"),
        ({0: PART}, 3, True, "FILE_PART_1_MISSING"),
        ({0: PART, 1: PART // 2, 2: 1}, 3, True, "FILE_PART_SIZE_INVALID"),
        ({0: 7, 1: 7}, 2, False, "FILE_PART_SIZE_INVALID"),
        ({0: 1024, 1: 2048}, 2, False, "FILE_PART_SIZE_INVALID"),
        (dict.fromkeys(range(21), PART), 21, False, "FILE_PARTS_INVALID"),
        (dict.fromkeys(range(21), PART), 21, True, ""),
    ],
)
def test_a_file_is_made_of_equal_parts_that_are_all_there(parts, count, big, refusal):
    assert file_refusal(parts, count, big=big) == refusal


@pytest.mark.parametrize(
    ("offset", "limit", "precise", "refusal"),
    [
        (0, MIB, False, ""),
        (5 * MIB, 512 * KIB, False, ""),
        (4 * KIB, 4 * KIB, False, ""),
        (KIB, 4 * KIB, False, "OFFSET_INVALID"),
        (-4096, 4096, False, "OFFSET_INVALID"),
        (0, 0, False, "LIMIT_INVALID"),
        (0, 2 * MIB, False, "LIMIT_INVALID"),
        (0, 12 * KIB, False, "LIMIT_INVALID"),
        (512 * KIB, MIB, False, "LIMIT_INVALID"),
        (KIB, 3 * KIB, True, ""),
        (512, KIB, True, "OFFSET_INVALID"),
        (MIB - KIB, 2 * KIB, True, "LIMIT_INVALID"),
    ],
)
def test_a_range_is_aligned_and_stays_within_one_mebibyte(offset, limit, precise, refusal):
    assert range_refusal(offset, limit, precise=precise) == refusal
