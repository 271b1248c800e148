"""What the governor remembers between processes, and the few operations that it needs for that.

Contract of ``GovernorStore``. One round trip per operation; no connection is held between operations. All
times are the database's: what goes in and out is a number of seconds from the database's present.
``RetryableError`` means that the database cannot be reached at the moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.flow.flood import Flood
    from worker.flow.limits import Buckets
    from worker.flow.pacing import Adaptation


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


class GovernorStore(Protocol):
    """The governor's memory, shared by all processes."""

    async def admit(self, call: Call, buckets: Buckets, adaptation: Adaptation) -> Admission:
        """Charge the call to its paces if no block and no pace stands against it; all of it or nothing."""
        ...

    async def record_flood(self, report: FloodReport) -> Verdict:
        """Block, escalate, widen and log in one step, and tell all processes. A block never gets shorter."""
        ...

    async def record_activity(self, rows: Sequence[Activity], counts: Sequence[PartCount]) -> None:
        """Write lines of the record and add counts to the present window."""
        ...

    async def active_blocks(self) -> Sequence[Block]:
        """The blocks in force."""
        ...

    async def cleanup(self) -> Cleaned:
        """Remove what is too old to matter, and no block that is in force."""
        ...
