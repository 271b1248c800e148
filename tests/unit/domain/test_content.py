"""The key of a content's lock."""

import pytest

from worker.domain.content import lock_key


def test_the_key_is_the_first_eight_bytes_big_endian_and_signed():
    assert lock_key(bytes.fromhex("0000000000000001") + bytes(24)) == 1
    assert lock_key(b"\xff" * 32) == -1
    assert lock_key(b"\x80" + bytes(31)) == -(2**63)


def test_anything_but_a_sha256_is_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        lock_key(b"short")
