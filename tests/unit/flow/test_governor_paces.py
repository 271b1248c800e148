"""Paces, back-off, flood texts and limits: the governor's arithmetic."""

import asyncio
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock, settle

from worker.config.settings import RateLimitSettings
from worker.domain.calls import Adaptation, Call, Flood, FloodKind, Pace
from worker.errors import BusyError, DiskFullError, NotBeforeError, UserError
from worker.flow.flood import LONGEST, read, recognise
from worker.flow.gap import Gap
from worker.flow.limits import DEFAULT, Limits
from worker.flow.pacing import PaceState, charge, wait, widen, widening

HOW = Adaptation()


def starts(pace, arrivals, how=HOW, floods=()):
    """When calls start that arrive at these moments, each as soon as it may, floods in between."""
    state, now, started = PaceState(), 0.0, []
    floods = sorted(floods)
    for arrival in sorted(arrivals):
        now = max(now, arrival)
        while (seconds := wait(pace, state, now, how)) > 0:
            now += seconds
        while floods and floods[0] <= now:
            state = widen(state, floods.pop(0), how)
        state = charge(pace, state, now, how)
        started.append(now)
    return started


@given(
    per_minute=st.sampled_from([5, 20, 30, 600]),
    burst=st.integers(1, 6),
    arrivals=st.lists(st.floats(0, 300), min_size=1, max_size=80),
    floods=st.lists(st.floats(0, 300), max_size=4),
    slow_from=st.floats(0, 0.9),
)
def test_g1_over_any_interval_calls_never_exceed_rate_times_time_plus_burst(
    per_minute, burst, arrivals, floods, slow_from
):
    """Edges included, whatever the arrivals, and while the pace widens and recovers."""
    pace = Pace(per_minute, burst)
    started = starts(pace, arrivals, Adaptation(slow_from=slow_from, half_life=20), floods)
    for first in range(len(started)):
        for last in range(first, len(started)):
            allowed = (started[last] - started[first]) / pace.interval + burst
            assert last - first + 1 <= math.floor(allowed + 1e-4)


def test_g1_no_double_burst_passes_at_the_edge_of_a_minute():
    started = starts(Pace(30, burst=3), [59.9] * 40 + [60.1] * 40)
    assert sum(59 <= moment <= 61 for moment in started) <= 3 + 1


def test_g2_the_soft_limits_are_settings_with_these_defaults():
    limits = DEFAULT

    def pace(method, **options):
        return limits.buckets(Call(1, method, **options)).pace.per_minute

    assert pace("messages.getHistory") == 30
    assert pace("messages.search") == 20
    assert pace("contacts.getContacts") == 5
    assert pace("messages.sendMessage") == 30
    assert pace("channels.getParticipants") == 20
    assert pace("messages.sendMessage", premium=True) == 45
    assert pace("messages.search", premium=True) == 20
    changed = Limits.of(RateLimitSettings(search_per_min=7))
    assert changed.buckets(Call(1, "messages.search")).pace.per_minute == 7


def test_g2_history_is_limited_per_chat_as_well_and_media_counts_as_messages():
    limits = DEFAULT
    history = limits.buckets(Call(1, "messages.getHistory", chat=5))
    assert history.chat_pace.per_minute == 30
    assert limits.buckets(Call(1, "messages.getHistory")).chat_pace is None
    assert limits.buckets(Call(1, "messages.sendMedia", chat=5)) == limits.buckets(
        Call(1, "messages.sendMessage", chat=5)
    )


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ("FLOOD_WAIT_420", FloodKind.FLOOD, 420),
        ("messages.getHistory: 420 FLOOD_WAIT_20", FloodKind.FLOOD, 20),
        ("FLOOD_PREMIUM_WAIT_3", FloodKind.PREMIUM, 3),
        ("SLOWMODE_WAIT_30", FloodKind.SLOWMODE, 30),
        ("A wait of 77 seconds is required", FloodKind.FLOOD, 77),
        ("Telegram says: [420 FLOOD_WAIT_X] - A wait of 9 seconds is required", FloodKind.FLOOD, 9),
        ("[420 FLOOD_PREMIUM_WAIT_X] - A wait of 2 seconds is required", FloodKind.PREMIUM, 2),
        ("Wait of 1 second", FloodKind.FLOOD, 1),
        ("FLOOD_WAIT_0", FloodKind.FLOOD, 1),
        ("FLOOD_WAIT", FloodKind.FLOOD, 60),
        ("SLOWMODE_WAIT_X", FloodKind.SLOWMODE, 60),
        ("FLOOD_WAIT_99999999999", FloodKind.FLOOD, LONGEST),
        ("FLOOD_WAIT_" + "9" * 5000, FloodKind.FLOOD, LONGEST),
    ],
)
def test_g6_every_spelling_of_a_wait_is_recognised(text, kind, seconds):
    assert read(text) == Flood(kind, seconds)
    assert recognise(UserError(text)) == Flood(kind, seconds)


class FloodWait(Exception):  # noqa: N818 - the library's name
    """As the client library has it: its length in ``value``."""

    def __init__(self, value) -> None:
        super().__init__("typed")
        self.value = value


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FloodWait(12), Flood(FloodKind.FLOOD, 12)),
        (FloodWait(0), Flood(FloodKind.FLOOD, 1)),
        (FloodWait(None), Flood(FloodKind.FLOOD, 60)),
        (type("FloodPremiumWait", (FloodWait,), {})(4), Flood(FloodKind.PREMIUM, 4)),
        (type("SlowmodeWait", (FloodWait,), {})(8), Flood(FloodKind.SLOWMODE, 8)),
        (NotBeforeError("420 something new", seconds=33.2), Flood(FloodKind.FLOOD, 34)),
        (BusyError("the hash is busy", seconds=5), None),
        (DiskFullError("the disk took no more", seconds=60), None),
        (UserError("CHAT_WRITE_FORBIDDEN"), None),
    ],
)
def test_g6_typed_errors_are_recognised_and_others_are_not(error, expected):
    assert recognise(error) == expected


@given(seconds=st.integers(1, 100000), draw=st.floats(0, 1))
def test_g6_work_rests_between_one_and_two_seconds_longer_than_asked(seconds, draw):
    assert seconds + 1 <= DEFAULT.hold(Flood(FloodKind.FLOOD, seconds), draw) <= seconds + 2


@given(attempt=st.integers(0, 5000), draw=st.floats(0, 1))
def test_g7_delays_double_from_100_ms_up_to_60_s_with_ten_percent_jitter(attempt, draw):
    exact = min(0.1 * 2 ** min(attempt, 60), 60)
    assert exact * 0.9 <= DEFAULT.backoff.delay(attempt, draw) <= min(exact * 1.1, 60) + 1e-9


def test_g11_a_flood_widens_the_pace_and_it_recovers_gradually():
    state = widen(PaceState(), 0.0, HOW)
    factors = [widening(state, moment, HOW) for moment in (0, 300, 900, 1800, 7200)]
    assert factors[0] == 2.0
    assert factors == sorted(factors, reverse=True)
    assert factors[2] == 1.5
    assert 1.0 < factors[4] < 1.01


def test_g11_repeated_floods_widen_further_up_to_a_bound():
    state = PaceState()
    for _ in range(20):
        state = widen(state, 0.0, HOW)
    assert widening(state, 0.0, HOW) == HOW.widest


def test_g11_calls_are_spaced_wider_before_the_limit_is_reached():
    eager = starts(Pace(30, burst=10), [0.0] * 14, Adaptation(slow_from=0.5))
    gaps = [later - earlier for earlier, later in itertools.pairwise(eager)]
    assert gaps[:4] == [0, 0, 0, 0]  # plenty left: no reason to wait
    assert all(earlier <= later + 1e-9 for earlier, later in itertools.pairwise(gaps[4:]))
    assert 0 < gaps[6] < 2  # the limit is not reached yet, and it slows down already


async def test_delays_are_measured_from_the_end_of_the_last():
    clock = ManualClock()
    gap, moments = Gap(1.0, clock), []

    async def page(seconds):
        async with gap:
            moments.append(clock.monotonic())
            await clock.sleep(seconds)

    tasks = [asyncio.create_task(page(seconds)) for seconds in (2.0, 0.5, 0.0)]
    await clock.advance(10)
    await asyncio.gather(*tasks)
    assert moments == [0, 3.0, 4.5]


async def test_delays_hold_after_an_error_and_a_cancelled_wait_passes_its_turn_on():
    clock = ManualClock()
    gap, moments = Gap(1.0, clock), []
    with pytest.raises(ValueError, match="page"):
        async with gap:
            raise ValueError("page")

    async def page():
        async with gap:
            moments.append(clock.monotonic())

    impatient, patient = asyncio.create_task(page()), asyncio.create_task(page())
    await settle()
    impatient.cancel()
    await clock.advance(5)
    await patient
    assert moments == [1.0]
