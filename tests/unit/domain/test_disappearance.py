"""How much may be missing before a person is asked."""

import pytest

from worker.domain.disappearance import most_at_once


@pytest.mark.parametrize(
    ("packages", "withdrawn_without_asking"),
    [(0, 1), (1, 1), (99, 1), (200, 2), (299, 2), (1_999, 19), (2_000, 20), (500_000, 20)],
)
def test_one_in_a_hundred_and_never_more_than_twenty_are_withdrawn_without_asking(
    packages, withdrawn_without_asking
):
    assert most_at_once(packages) == withdrawn_without_asking
