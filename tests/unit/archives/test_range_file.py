import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.archives.source import FIRST_WINDOW, LAST_WINDOW, Parts

BODY = bytes(n * 7 % 251 for n in range(300_000))


def parts_of(*sizes):
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    asked = []

    def fetch(part, offset, length):
        asked.append(length)
        assert length > 0
        assert offset + length <= sizes[part]
        return BODY[starts[part] + offset : starts[part] + offset + length]

    return Parts(sizes, fetch), asked


@given(
    st.lists(st.integers(0, 40_000), min_size=1, max_size=7),
    st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 99_999)), max_size=20),
)
def test_any_reads_over_joined_parts_equal_those_of_one_file(sizes, reads):
    parts, _ = parts_of(*sizes)
    joined, plain = parts.joined(), io.BytesIO(BODY[: sum(sizes)])
    for offset, length in reads:
        assert joined.seek(offset) == plain.seek(offset)
        assert joined.read(length) == plain.read(length)
        assert joined.tell() == plain.tell()


def test_a_jump_fetches_little_and_reading_on_fetches_more_at_a_time():
    parts, asked = parts_of(300_000)
    file = parts.volume(0)
    file.read_at(250_000, 10)
    assert asked == [FIRST_WINDOW]
    file.read_at(0, 10)
    for offset in range(0, 200_000, 100):
        file.read_at(offset, 100)
    assert len(asked) < 8
    assert max(asked) <= LAST_WINDOW


def test_seeking_before_the_beginning_is_refused():
    parts, _ = parts_of(100)
    with pytest.raises(OSError, match="before the beginning"):
        parts.volume(0).seek(-1)
    assert parts.volume(0).seek(-10, io.SEEK_END) == 90
