"""Ranges are hashed side by side where the processor can, and always to the same."""

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skip_report import lacking

from worker.cipher import range_hashes
from worker.cipher.range_hashes import SIDE_BY_SIDE, sha256_each

CONTENT = memoryview(os.urandom(1 << 20))


def expected(ranges):
    return [hashlib.sha256(each).digest() for each in ranges]


@given(st.lists(st.sampled_from([0, 1, 63, 64, 65, 128, 4096]), max_size=70))
def test_ranges_of_any_lengths_and_number(lengths):
    ranges = [CONTENT[place : place + length] for place, length in enumerate(lengths)]
    assert sha256_each(ranges) == expected(ranges)


@pytest.mark.parametrize("count", [8, 16, 24, 32])
def test_the_ranges_of_whole_parts(count):
    ranges = [CONTENT[number * 1024 : number * 1024 + 128 * 1024] for number in range(count)]
    assert sha256_each(ranges) == expected(ranges)


def test_a_processor_without_wide_registers_gives_the_same(monkeypatch):
    ranges = [CONTENT[number * 64 : number * 64 + 4096] for number in range(SIDE_BY_SIDE)]
    wide = sha256_each(ranges)
    monkeypatch.setattr(range_hashes, "_is_wide", False)
    assert sha256_each(ranges) == wide == expected(ranges)


def test_the_extension_refuses_what_it_cannot_hash_side_by_side():
    if range_hashes.native is None:
        lacking("a C compiler")
    if not range_hashes._is_wide:
        pytest.skip("this processor has no AVX-512")
    for ranges in (
        [b"x" * 64] * 15,
        [b"x" * 63] * 16,
        [b"x" * 64] * 15 + [b"x" * 128],
        [b"x" * 64] * 15 + ["text"],
    ):
        with pytest.raises((TypeError, ValueError)):
            range_hashes.native.hash(ranges)
