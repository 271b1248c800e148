"""Calls to Telegram as the fleet accounts for them: their paces, their refusals, their record.

What flows between the governor, which decides, and the database, which remembers. Durations are in seconds;
where a moment is meant, it is a number of seconds from the database's present, never a process's own time.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Literal


class FloodKind(enum.Enum):
    """What a wait is about, and so what it stops."""

    FLOOD = "FLOOD_WAIT"  # the method, for this account
    PREMIUM = "FLOOD_PREMIUM_WAIT"  # this one part of a transfer: pacing, not punishment
    SLOWMODE = "SLOWMODE_WAIT"  # this chat, for this account


@dataclass(frozen=True, slots=True)
class Flood:
    """A wait of ``seconds``, as Telegram named it."""

    kind: FloodKind
    seconds: int

    @property
    def name(self) -> str:
        """The error as Telegram spells it."""
        return f"{self.kind.value}_{self.seconds}"


@dataclass(frozen=True, slots=True)
class Adaptation:
    """How a pace learns: ``widen`` per flood, up to ``widest``, fading by half in ``half_life`` seconds."""

    widen: float = 2.0
    widest: float = 16.0
    half_life: float = 900.0
    slow_from: float = 0.5  # the share of the burst from which on gaps are widened ahead of the limit


@dataclass(frozen=True, slots=True)
class Pace:
    """What is allowed: ``per_minute`` in the long run, ``burst`` at once."""

    per_minute: float
    burst: int = 3

    @property
    def interval(self) -> float:
        """Seconds per call in the long run."""
        return 60.0 / self.per_minute

    def times(self, factor: float) -> Pace:
        """A pace ``factor`` times as fast."""
        return replace(self, per_minute=self.per_minute * factor)


@dataclass(frozen=True, slots=True)
class Buckets:
    """The paces that one call is charged to: its method class, and perhaps its chat as well."""

    name: str
    pace: Pace
    chat_pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls what, and for which chat (0: none); ``context`` says why, for whoever reads the activity."""

    account: int
    method: str
    chat: int = 0
    premium: bool = False
    context: str = ""


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a call may start: with no ``wait`` it may, and has been charged."""

    wait: float = 0.0
    reason: Literal["", "flood", "slow mode", "pace", "chat pace", "store away"] = ""

    @property
    def granted(self) -> bool:
        return self.wait <= 0.0

    @property
    def of_chat(self) -> bool:
        """Whether only this chat has to wait, and calls for others may go ahead."""
        return self.reason in {"slow mode", "chat pace"}


@dataclass(frozen=True, slots=True)
class Escalation:
    """From the ``count``-th flood of a method ``within`` seconds on, waits are ``extra`` seconds longer."""

    count: int
    within: float
    extra: float


@dataclass(frozen=True, slots=True)
class FloodReport:
    """A refusal, and for how long to hold from now on. ``bucket`` names the pace that learns from it."""

    call: Call
    flood: Flood
    hold: float
    bucket: str
    duration: float
    escalation: Escalation
    adaptation: Adaptation


@dataclass(frozen=True, slots=True)
class Verdict:
    """For how many seconds the refused work rests, and whether that was made longer for repetition."""

    seconds: float
    escalated: bool = False


@dataclass(frozen=True, slots=True)
class Activity:
    """One line of the record of calls; ``calls`` is more than one for the parts of a file."""

    account: int
    method: str
    ok: bool
    duration: float
    error: str = ""
    flood_seconds: int = 0
    context: str = ""
    calls: int = 1


@dataclass(frozen=True, slots=True)
class PartCount:
    """Calls of one account and method that were counted without asking the database for each."""

    account: int
    method: str
    calls: int


@dataclass(frozen=True, slots=True)
class Block:
    """A wait that is in force: ``chat`` 0 stops the whole method of the account."""

    account: int
    method: str
    chat: int
    seconds_left: float
    wait: int


@dataclass(frozen=True, slots=True)
class Cleaned:
    """How many rows a clean-up removed."""

    windows: int
    activity: int
    blocks: int
