import hashlib
import threading

import pytest
from hang_guard import HANG_SECONDS
from hypothesis import given
from hypothesis import strategies as st

from worker.workspace import set_hash
from worker.workspace.set_hash import SetHash

# On both sides of what is worth another thread.
SIZES = st.lists(
    st.lists(
        st.sampled_from([0, 1, 63, 64, 2_047, set_hash._WORTH_SHARING - 1, set_hash._WORTH_SHARING, 100_001])
    )
)


@given(SIZES)
def test_the_content_hash_is_over_all_parts_in_order_and_each_part_has_its_own(sizes):
    pieces = [[bytes([n % 256]) * size for n, size in enumerate(part)] for part in sizes]
    with SetHash() as digest:
        parts = []
        for part in pieces:
            for piece in part:
                digest.update(piece)
            parts.append(digest.end_part())
        content = digest.content()
    assert parts == [hashlib.sha256(b"".join(part)).digest() for part in pieces]
    assert content == hashlib.sha256(b"".join(map(b"".join, pieces))).digest()


def test_the_bytes_may_change_as_soon_as_they_were_taken():
    size = set_hash._WORTH_SHARING
    buffer = bytearray(size)
    whole = hashlib.sha256()
    with SetHash() as digest:
        for number in range(20):
            buffer[:] = bytes([number]) * size
            digest.update(memoryview(buffer))
            whole.update(buffer)
            digest.end_part()
        buffer += b"no view of it is left"
        assert digest.content() == whole.digest()


def test_its_thread_ends_with_it():
    others = threading.enumerate()  # one of an earlier test may be about to end
    with SetHash() as digest:
        digest.end_part()
        digest.update(bytes(set_hash._WORTH_SHARING))
        (beside,) = set(threading.enumerate()).difference(others)
    beside.join(timeout=HANG_SECONDS)
    assert not beside.is_alive()


def test_one_part_needs_no_thread():
    others = threading.enumerate()
    with SetHash() as digest:
        digest.update(bytes(10 * set_hash._WORTH_SHARING))
        digest.end_part()
        assert set(threading.enumerate()) <= set(others)


def test_what_fails_in_the_thread_is_raised_where_the_bytes_were_given():
    class Broken:
        def update(self, data):
            raise BufferError("broken")

    with SetHash() as digest:
        digest.end_part()
        digest._content = Broken()
        with pytest.raises(BufferError, match="broken"):
            digest.update(bytes(set_hash._WORTH_SHARING))
