"""Pauses: what they cover, and which of them counts."""

import pytest

from worker.domain.pauses import Pause, in_the_way


@pytest.mark.parametrize(
    ("pause", "covered"),
    [
        (Pause(), True),
        (Pause(account=1), True),
        (Pause(account=2), False),
        (Pause(channel=5), True),
        (Pause(channel=6), False),
        (Pause(account=1, channel=5), True),
        (Pause(account=2, channel=5), False),
    ],
)
def test_g14_a_pause_covers_what_it_names(pause, covered):
    assert pause.covers(1, 5) is covered


def test_g14_the_longest_pause_counts():
    assert in_the_way([Pause(seconds_left=5), Pause(account=1), Pause(seconds_left=60)], 1, None) == Pause(
        account=1
    )
    assert in_the_way([Pause(account=2)], 1, None) is None
