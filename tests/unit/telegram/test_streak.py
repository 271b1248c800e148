"""Losses in a row, and when they are trouble that a person hears of."""

import pytest

from worker.telegram.streak import FEWEST, LONGEST_PAUSE, Streak


@pytest.fixture
def time():
    return [0.0]


@pytest.fixture
def streak(time):
    return Streak(60.0, lambda: time[0])


def lose(streak, time, times, apart):
    for _ in range(times):
        time[0] += apart
        streak.lost("it was closed")


def test_pauses_grow_to_a_bound_however_long_a_night_without_a_network_is(streak, time):
    pauses = []
    for _ in range(2000):
        lose(streak, time, 1, 10.0)
        pauses.append(streak.pause)
    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert pauses[-1] == LONGEST_PAUSE


def test_many_losses_within_a_short_time_are_no_trouble_yet(streak, time):
    lose(streak, time, 100, apart=0.5)
    assert streak.trouble is None


def test_few_losses_over_a_long_time_are_no_trouble_yet(streak, time):
    lose(streak, time, FEWEST - 1, apart=30.0)
    assert streak.trouble is None


def test_losses_that_go_on_are_told_with_their_number_time_and_last_reason(streak, time):
    lose(streak, time, 13, apart=5.0)
    assert streak.trouble == "broke 13 times within 60 s, the last time because it was closed"


def test_a_connection_that_lasts_ends_the_trouble(streak, time):
    lose(streak, time, 13, apart=5.0)
    streak.began()
    time[0] += 11.0
    streak.lost("it was closed")
    assert streak.count == 1
    assert streak.trouble is None


def test_connections_that_open_and_break_at_once_are_the_same_trouble(streak, time):
    for _ in range(13):
        streak.began()
        lose(streak, time, 1, apart=5.0)
    assert streak.trouble is not None
    assert streak.flaps


def test_an_outage_is_told_apart_from_connections_that_open_and_break(streak, time):
    streak.began()
    lose(streak, time, 13, apart=5.0)
    assert streak.trouble is not None
    assert not streak.flaps


def test_what_broke_an_hour_ago_is_another_story(streak, time):
    lose(streak, time, 13, apart=5.0)
    time[0] += 3600.0
    assert streak.trouble is None
    streak.lost("it was closed")
    assert streak.count == 1


def test_a_server_that_wants_fewer_connections_is_left_alone_for_longer(streak, time):
    lose(streak, time, 1, apart=1000.0)
    before = streak.pause
    streak.ended()
    streak.crowded()
    lose(streak, time, 1, apart=1000.0)
    assert streak.pause > 10 * before
    streak.ended()
    assert streak.pause == 0.0
