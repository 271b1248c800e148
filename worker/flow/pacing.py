"""The arithmetic of a pace: how many calls a minute, how many at once, and what a flood teaches.

Contract. Over any interval the calls that were let through never exceed rate times time plus burst; there
is no window whose edge lets a double burst through (this is the generic cell rate algorithm: ``tat`` is the
theoretical arrival time of the next call). The nearer the budget is to its end the wider the gaps become,
so that a caller slows down instead of running into a wall. A flood widens the pace; the widening fades with
a half-life. Pure functions of a state that lives elsewhere: the database function ``governor_admit`` does
the same sums under a row lock, and is tested against these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.domain.calls import Adaptation, Pace

RESOLUTION = 1e-6
"""The database's time has no finer steps: a wait that is shorter could never be seen to end."""


@dataclass(frozen=True, slots=True)
class PaceState:
    """What is remembered of a pace between calls; times in seconds on one clock."""

    tat: float = float("-inf")
    last_at: float = float("-inf")
    widened: float = 1.0
    widened_at: float = 0.0


def widening(state: PaceState, now: float, how: Adaptation) -> float:
    """By which factor the interval is longer than it would be had there been no flood."""
    halvings = max(0.0, now - state.widened_at) / how.half_life
    return 1.0 + (state.widened - 1.0) * math.exp2(-halvings)


def wait(pace: Pace, state: PaceState, now: float, how: Adaptation) -> float:
    """Seconds until the next call may start; 0 if it may start now."""
    backlog = max(state.tat - now, 0.0)
    # The tolerance is that of the pace unwidened: with the widened one, a pace that has just recovered
    # would let more through than rate times time plus burst.
    hard = backlog - (pace.burst - 1) * pace.interval
    used = backlog / (pace.burst * pace.interval)
    strain = min(max((used - how.slow_from) / (1.0 - how.slow_from), 0.0), 1.0)
    gap = pace.interval * widening(state, now, how) * strain
    seconds = max(hard, state.last_at + gap - now)
    return seconds if seconds > RESOLUTION else 0.0


def charge(pace: Pace, state: PaceState, now: float, how: Adaptation) -> PaceState:
    """The state after a call has started."""
    step = pace.interval * widening(state, now, how)
    return replace(state, tat=max(state.tat, now) + step, last_at=now)


def widen(state: PaceState, now: float, how: Adaptation) -> PaceState:
    """The state after a flood."""
    return replace(state, widened=min(widening(state, now, how) * how.widen, how.widest), widened_at=now)
