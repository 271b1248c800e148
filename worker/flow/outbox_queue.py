"""The queue of one lane: which operation goes next, and which have become pointless. Pure decisions, no
waiting.

Contract. At most one pending operation per key; a newer one takes over and keeps the place. The order is by
priority and then by place, and whatever has waited longer than ``patience`` goes before the rest, oldest
first, so that a stream of sends cannot starve an edit. One operation is in flight at a time. One that comes
back for retry regains its place, unless something newer made it pointless. ``updated_at`` is there for
whoever debugs; no decision reads it. Methods return the tickets that a decision settled; the caller
resolves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from worker.flow.outbox_ops import Edit, Superseded

if TYPE_CHECKING:
    from worker.flow.outbox_ops import Key, Op, Outcome, Ticket

P = TypeVar("P")


@dataclass(slots=True, eq=False)
class Entry(Generic[P]):
    """One operation in the queue or in flight."""

    op: Op[P]
    ticket: Ticket
    key: Key
    place: int
    queued_at: float
    updated_at: float
    expires_at: float
    losses: int = 0  # attempts that ended without an answer: each may have been applied


@dataclass(frozen=True, slots=True)
class Settled:
    """A ticket whose outcome a decision of the queue determined."""

    ticket: Ticket
    outcome: Outcome


class LaneQueue(Generic[P]):
    """Pending operations of one lane, its pace and its retry-after."""

    def __init__(self, interval: float, patience: float) -> None:
        self._interval = interval
        self._patience = patience
        self._pending: dict[Key, Entry[P]] = {}
        self._next_at = float("-inf")
        self._retry_at = float("-inf")
        self.in_flight: Entry[P] | None = None

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def pending(self) -> list[Entry[P]]:
        """What waits, in order of place."""
        return sorted(self._pending.values(), key=lambda entry: entry.place)

    @property
    def ready_at(self) -> float:
        """When pace and retry-after allow the next operation."""
        return max(self._next_at, self._retry_at)

    @property
    def wake_at(self) -> float:
        """When there is something to do next: start an operation, or let one expire."""
        expiry = min((entry.expires_at for entry in self._pending.values()), default=float("inf"))
        return min(self.ready_at, expiry)

    def has(self, key: Key) -> bool:
        """Whether an operation with this key would take a pending one over."""
        return key in self._pending

    def offer(
        self, op: Op[P], ticket: Ticket, *, place: int, now: float, expires_at: float = float("inf")
    ) -> list[Settled]:
        """Queue an operation, or let it take over the pending one with its key."""
        if isinstance(op, Edit) and self._doomed(op, flying=True):
            return [Settled(ticket, Superseded())]
        settled = self._drop_edit(op.lane.chat, op.dooms)
        key = op.key(place)
        older = self._pending.get(key)
        if older is None:
            self._pending[key] = Entry(op, ticket, key, place, now, now, expires_at)
            return settled
        settled.append(Settled(older.ticket, Superseded()))
        self._pending[key] = Entry(op, ticket, key, older.place, older.queued_at, now, expires_at)
        return settled

    def take(self, now: float) -> Entry[P] | None:
        """Start the next operation, if one may start; the pace is charged from this moment."""
        if self.in_flight is not None or not self._pending or now < self.ready_at:
            return None
        entry = min(self._pending.values(), key=lambda entry: self._rank(entry, now))
        del self._pending[entry.key]
        self.in_flight = entry
        self._next_at = now + self._interval
        return entry

    def left(self, now: float) -> None:
        """The operation in flight was held up until this moment: the pace counts from here."""
        if self.in_flight is not None:
            self._next_at = now + self._interval

    def finish(self, entry: Entry[P]) -> None:
        """The operation in flight has ended for good."""
        assert self.in_flight is entry
        self.in_flight = None

    def retry(self, entry: Entry[P], at: float) -> list[Settled]:
        """The operation in flight came back and regains its place; nothing goes before ``at``."""
        self.finish(entry)
        self._retry_at = at
        newer = self._pending.get(entry.key)
        if newer is not None:
            newer.place = min(newer.place, entry.place)
            newer.queued_at = min(newer.queued_at, entry.queued_at)
            return [Settled(entry.ticket, Superseded())]
        if isinstance(entry.op, Edit) and self._doomed(entry.op, flying=False):
            return [Settled(entry.ticket, Superseded())]
        self._pending[entry.key] = entry
        return []

    def expire(self, now: float) -> list[Entry[P]]:
        """Take out what has not been started in its time, or cannot be because Telegram asked to wait."""
        late = [entry for entry in self._pending.values() if entry.expires_at <= max(now, self._retry_at)]
        for entry in late:
            del self._pending[entry.key]
        return late

    def remove(self, entry: Entry[P]) -> None:
        """Take a pending operation out."""
        del self._pending[entry.key]

    def _rank(self, entry: Entry[P], now: float) -> tuple[int, int]:
        aged = now - entry.queued_at >= self._patience
        return (-1 if aged else entry.op.priority, entry.place)

    def _doomed(self, edit: Edit[P], *, flying: bool) -> bool:
        """Whether a delete or a replacement of the edit's message is on its way."""
        if flying and self.in_flight is not None and self.in_flight.op.dooms == edit.message:
            return True
        chat, message = edit.lane.chat, edit.message
        return ("delete", chat, message) in self._pending or ("send", chat, message) in self._pending

    def _drop_edit(self, chat: int, message: int | None) -> list[Settled]:
        edit = None if message is None else self._pending.pop(("edit", chat, message), None)
        return [] if edit is None else [Settled(edit.ticket, Superseded())]
