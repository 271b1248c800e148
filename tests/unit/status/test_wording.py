"""Times and sizes as people read them."""

import pytest

from worker.status.wording import count_of, duration, size


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (45.4, "45s"),
        (59.7, "1m 00s"),
        (392, "6m 32s"),
        (9240, "2h 34m"),
        (273_600, "3d 4h"),
        (-3, "0s"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_960, "100 kB"),
        (45_200_000, "45.2 MB"),
        (999_600, "1.0 MB"),
        (3e15, "3000.0 TB"),
    ],
)
def test_a_size_has_three_digits(count, words):
    assert size(count) == words


def test_one_of_a_thing_is_singular():
    assert [count_of(1, "call"), count_of(1204, "call")] == ["1 call", "1,204 calls"]
