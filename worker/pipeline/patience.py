"""When a set that did not get through is tried again, and when it is given up. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from worker.errors import (
    OWN_TROUBLE,
    AccountUnusableError,
    BusyError,
    NoAccessError,
    NotBeforeError,
    RefusedError,
    SetFailedError,
    UnreachableError,
)

if TYPE_CHECKING:
    from worker.config.settings import FleetSettings

_LONGEST_DOUBLING = 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a claim that ended without a result.

    ``counts``: it was one of the set's attempts. ``waits``: how many waits in a row this makes.
    """

    seconds: float
    waits: int = 0
    counts: bool = False
    gives_up: bool = False


class Tried(Protocol):
    """A set with what it has been through."""

    @property
    def attempts(self) -> int:
        """How many of its attempts have failed."""
        ...

    @property
    def waits(self) -> int:
        """How many times in a row it was told to wait."""
        ...


def judge(error: Exception, claim: Tried, fleet: FleetSettings) -> Verdict:
    """Only what the set itself is to blame for counts: an outage must not use its attempts up."""
    if isinstance(error, BusyError):
        longer = _doubled(fleet.busy_retry_secs, claim.waits, fleet.busy_cap_secs)
        return Verdict(longer, waits=claim.waits + 1)
    if isinstance(error, NotBeforeError):
        return Verdict(error.seconds)
    if isinstance(error, (AccountUnusableError, UnreachableError, *OWN_TROUBLE)):
        # The worker waits for its end, and nothing can be written down before: the set waits no longer. An
        # account that Telegram has shut out, or that does not reach it, leaves it to the others at once.
        return Verdict(0.0, waits=claim.waits)
    seconds = _doubled(fleet.retry_base_secs, claim.attempts + claim.waits, fleet.retry_cap_secs)
    if isinstance(error, SetFailedError | NoAccessError | RefusedError):
        return Verdict(seconds, counts=True, gives_up=claim.attempts + 1 >= fleet.max_attempts)
    return Verdict(seconds, waits=claim.waits + 1)


def after_a_bug(claim: Tried, fleet: FleetSettings) -> Verdict:
    """Nobody knows what it did to the set: look again late, and not for ever."""
    return Verdict(fleet.retry_cap_secs, counts=True, gives_up=claim.attempts + 1 >= fleet.max_attempts)


def _doubled(base: float, times: int, cap: float) -> float:
    return float(min(cap, base * 2 ** min(times, _LONGEST_DOUBLING)))
