"""What there is to say about the fleet: plain data for the command line, the web page and the metrics.

Spans are in seconds, relative to ``at``, which is the database's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class SyncState(StrEnum):
    """The fleet in one word."""

    RUNNING = "running"
    WAITING = "waiting"  # there is work, and all of it has to wait
    PAUSED = "paused"  # a person wished it
    IDLE = "idle"  # everything is done
    STOPPED = "stopped"  # no worker lives


@dataclass(frozen=True, slots=True)
class AccountStatus:
    """An account; ``phone`` is masked, ``worker`` is ``host:pid`` of whoever runs it."""

    id: int
    name: str
    username: str | None
    phone: str
    premium: bool
    state: str
    reason: str | None
    worker: str | None
    paused: bool


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker process; ``silent`` if its heartbeat is overdue."""

    id: str
    host: str
    pid: int
    version: str
    uptime: float
    memory_bytes: int
    heartbeat_age: float
    silent: bool
    accounts: int

    @property
    def label(self) -> str:
        return f"{self.host}:{self.pid}"


@dataclass(frozen=True, slots=True)
class ApiActivity:
    """Calls to Telegram of the last minutes, the most frequent method first."""

    window_minutes: int
    by_method: dict[str, int]
    failed: int

    @property
    def total(self) -> int:
        return sum(self.by_method.values())


@dataclass(frozen=True, slots=True)
class ActiveWait:
    """Telegram told one account to leave one method alone, in one chat or (0) everywhere."""

    account: str
    account_id: int
    method: str
    chat: int
    wait_seconds: int
    clears_in: float


@dataclass(frozen=True, slots=True)
class EscalationStatus:
    """A method was refused so often that it rests longer than Telegram asked."""

    account: str
    account_id: int
    method: str
    floods: int
    extra_seconds: int
    age: float


@dataclass(frozen=True, slots=True)
class SlowedMethod:
    """What refusals taught: calls come ``factor`` times as far apart as they could."""

    account: str
    account_id: int
    method: str
    factor: float


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What stands against calls."""

    active_waits: tuple[ActiveWait, ...]
    escalations: tuple[EscalationStatus, ...]
    slowed: tuple[SlowedMethod, ...]

    @property
    def restricted(self) -> bool:
        return bool(self.active_waits)


@dataclass(frozen=True, slots=True)
class CurrentSet:
    """A set that an account works on; speed and end are not known before its bytes move."""

    set_id: int
    name: str
    channel: str
    account: str
    account_id: int
    step: str
    done_bytes: int
    total_bytes: int
    bytes_per_second: float | None
    eta: float | None

    @property
    def share(self) -> float:
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else 0.0


@dataclass(frozen=True, slots=True)
class PauseStatus:
    """What rests because a person wished it; without ``resumes_in`` until it is resumed."""

    what: str
    account_id: int | None
    channel_id: int | None
    by: str
    resumes_in: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that does not move, and why.

    ``kind`` is worker, account, destination, topic, set or message.
    """

    kind: str
    what: str
    why: str
    resumes_in: float | None


@dataclass(frozen=True, slots=True)
class Sync:
    """How far the work has come."""

    state: SyncState
    channels_scanned: int
    channels_total: int
    messages_scanned: int
    sets: dict[str, int]
    held_back: int
    messages_set_aside: int
    current: tuple[CurrentSet, ...]
    pauses: tuple[PauseStatus, ...]
    waiting: tuple[Waiting, ...]
    resumes_in: float | None

    @property
    def sets_total(self) -> int:
        return sum(self.sets.values())

    @property
    def bytes_per_second(self) -> float:
        return sum(item.bytes_per_second or 0.0 for item in self.current)

    @property
    def eta(self) -> float | None:
        """When the last of the sets under way is through its present step."""
        return max((item.eta for item in self.current if item.eta is not None), default=None)


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """Everything at one moment."""

    at: datetime
    accounts: tuple[AccountStatus, ...]
    workers: tuple[WorkerStatus, ...]
    activity: ApiActivity
    rate_limits: RateLimits
    sync: Sync
