"""What can be asked of the outbox, and how each request can end.

An operation belongs to a lane, which is one account writing to one chat. Its key says which pending
operation it would take the place of; its priority, who goes first. A ticket resolves exactly once, to one
of six outcomes, and a callback that raises changes nothing about that.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

P = TypeVar("P")
log = get_logger(__name__)

Key: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Lane:
    """One account writing to one chat: a flood of one account holds back no other account's sends."""

    account: int
    chat: int
    # Channels and groups bear less than a private chat does; who does not know had better assume them.
    is_private: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Send(Generic[P]):
    """A new message. ``random_id`` is made once by the caller: every repeat of the send carries the same one.

    With ``replaces``, that message is deleted as soon as this one is confirmed.
    """

    lane: Lane
    payload: P
    random_id: int
    replaces: int | None = None

    @property
    def priority(self) -> int:
        return 0

    def key(self, place: int) -> Key:
        """Sends that replace the same message share a key; a plain send's key is its own place."""
        if self.replaces is None:
            return ("plain", self.lane.chat, place)
        return ("send", self.lane.chat, self.replaces)

    @property
    def dooms(self) -> int | None:
        """The message that will be gone after this operation."""
        return self.replaces


@dataclass(frozen=True, slots=True)
class Edit(Generic[P]):
    """New contents of a message. Cosmetic: a newer edit, a delete or want of room may drop it."""

    lane: Lane
    message: int
    payload: P

    @property
    def priority(self) -> int:
        return 2

    def key(self, place: int) -> Key:  # noqa: ARG002  # one shape for all operations
        return ("edit", self.lane.chat, self.message)

    @property
    def dooms(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class Delete:
    """The end of a message."""

    lane: Lane
    message: int

    @property
    def priority(self) -> int:
        return 1

    def key(self, place: int) -> Key:  # noqa: ARG002  # one shape for all operations
        return ("delete", self.lane.chat, self.message)

    @property
    def dooms(self) -> int | None:
        return self.message


Op: TypeAlias = Send[P] | Edit[P] | Delete


@dataclass(frozen=True, slots=True)
class Sent:
    """It is done.

    ``message`` is None if Telegram said only that it had been sent before: then look for its marker.
    """

    message: int | None


@dataclass(frozen=True, slots=True)
class Superseded:
    """A newer operation made it pointless; nothing was written."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It was refused for good."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Expired:
    """Its time passed, or a cosmetic edit had to make room, before it was written.

    ``seconds`` is how long the lane has to wait from here on, if Telegram asked it to.
    """

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Closed:
    """The outbox was closed, or the caller withdrew it, before it was written."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may or may not have been written: find out before doing anything about it."""


Outcome: TypeAlias = Sent | Superseded | Failed | Expired | Closed | Unknown


class Ticket:
    """The promise that an operation will have an outcome. Await it to get that outcome."""

    __slots__ = ("_callbacks", "_waiters", "outcome")

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self._waiters: set[asyncio.Future[Outcome]] = set()
        self._callbacks: list[Callable[[Outcome], object]] = []

    def on_outcome(self, callback: Callable[[Outcome], object]) -> None:
        """Call back once, when the outcome is known; at once if it is."""
        if self.outcome is not None:
            _call(callback, self.outcome)
        else:
            self._callbacks.append(callback)

    def resolve(self, outcome: Outcome) -> bool:
        """Set the outcome, if there is none yet; say whether this call did."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(outcome)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            _call(callback, outcome)
        return True

    def __await__(self) -> Generator[Any, None, Outcome]:
        if self.outcome is not None:
            return self.outcome
        # A future per waiter: cancelling one of them takes the outcome from nobody.
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            return (yield from waiter.__await__())
        finally:
            self._waiters.discard(waiter)


def _call(callback: Callable[[Outcome], object], outcome: Outcome) -> None:
    try:
        callback(outcome)
    except Exception:
        log.exception("outbox.callback.failed", outcome=repr(outcome))
