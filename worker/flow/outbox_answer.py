"""What an attempt to write means: done, once more, or over. Pure.

A wait that Telegram asks for uses nothing up. A lost connection is tried again, and that is safe: a send is
repeated with its own ``random_id``, edits and deletes may be repeated at will. If it is given up, a send
may have arrived all the same, so its outcome is unknown and not failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from worker.errors import AlreadyDoneError, NotBeforeError, OutcomeUnknownError
from worker.flow.backoff import LOST
from worker.flow.outbox_ops import Expired, Failed, Outcome, Send, Sent, Unknown

if TYPE_CHECKING:
    from worker.flow.outbox_queue import Entry

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait before writing again, in seconds, and how many lost connections to bear."""

    flood: float = 5.0  # when Telegram gives no number
    lost: float = 10.0
    losses: int = 30


@dataclass(frozen=True, slots=True)
class Again:
    """Try the same operation ``seconds`` from now."""

    seconds: float


def judge(entry: Entry[P], error: Exception, policy: RetryPolicy) -> Outcome | Again:
    """Say what follows from an attempt that raised ``error``."""
    if isinstance(error, AlreadyDoneError):
        return Sent(error.message)
    if isinstance(error, NotBeforeError):
        return Again(error.seconds if error.seconds > 0 else policy.flood)
    if isinstance(error, (*LOST, OutcomeUnknownError)):
        entry.losses += 1
        sending = isinstance(entry.op, Send)
        if entry.losses <= policy.losses and not (sending and isinstance(error, OutcomeUnknownError)):
            return Again(policy.lost)
        return Unknown() if sending else Failed(error)
    return Failed(error)


def too_late(entry: Entry[P], seconds: float = 0.0) -> Outcome:
    """The outcome of an operation whose time has passed while it waited."""
    return Unknown() if entry.losses and isinstance(entry.op, Send) else Expired(seconds)
