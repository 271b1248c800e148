"""How many accounts each worker runs."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.domain.shares import fair_share, preferred


@pytest.mark.parametrize(
    ("held", "accounts", "free", "wanted"),
    [
        ({"a": 0}, 5, 5, 5),
        ({"a": 5, "b": 0}, 5, 0, 3),
        ({"a": 3, "b": 2}, 5, 0, 3),
        ({"a": 0, "b": 0, "c": 0, "d": 0}, 4, 4, 1),
        ({"a": 1, "b": 0}, 1, 0, 1),
        ({"a": 0, "b": 1}, 1, 0, 1),
        ({"a": 0, "b": 0}, 0, 0, 0),
    ],
)
def test_a_worker_runs_at_most_the_accounts_divided_by_the_workers(held, accounts, free, wanted):
    assert fair_share(held, "a", accounts=accounts, free=free) == wanted


def test_one_of_two_rich_workers_yields_to_a_poor_one():
    held = {"a": 2, "b": 2, "c": 0}
    assert [fair_share(held, me, accounts=4, free=0) for me in "ab"] == [2, 1]


def test_what_is_free_is_left_to_the_worker_that_has_too_few():
    held = {"a": 1, "b": 2, "c": 0}
    assert [fair_share(held, me, accounts=4, free=1) for me in "abc"] == [1, 2, 2]


@given(workers=st.integers(1, 6), accounts=st.integers(0, 20), seed=st.integers(0, 2**32))
def test_sharing_settles_with_everybody_within_one_of_each_other(workers, accounts, seed):
    chance = random.Random(seed)
    drawn = Counter(chance.choices(range(workers), k=accounts))
    held = {worker: drawn[worker] for worker in range(workers)}
    free = 0
    for _ in range(10 * (workers + accounts)):
        me = chance.randrange(workers)
        moved = min(fair_share(held, me, accounts=accounts, free=free) - held[me], free)
        held[me] += moved
        free -= moved
    assert free == 0
    assert max(held.values()) - min(held.values()) <= 1


def test_workers_begin_to_take_at_different_places():
    assert [preferred("abcd", place=place, workers=2)[0] for place in range(2)] == ["a", "c"]
    assert preferred("abc", place=1, workers=2) == ["c", "a", "b"]
    assert preferred("", place=0, workers=1) == []
