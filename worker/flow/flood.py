"""Recognises the waits that Telegram asks for.

Contract. ``recognise`` reads an error, typed or as text, and says which wait it asks for and of what
length; an error that asks for none gives None. A wait of 0 s counts as 1 s, one of unknown length as 60 s.
``hold`` says for how long the work then rests: between one and two seconds more than asked.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

_NAMED = re.compile(r"\b(FLOOD_PREMIUM_WAIT|FLOOD_WAIT|SLOWMODE_WAIT)(?:_(\d+))?", re.IGNORECASE)
_TOLD = re.compile(r"\bwait of (\d+) seconds?\b", re.IGNORECASE)
_UNKNOWN_LENGTH = 60

# The rest between a wait's end and the next call is one to two seconds. Drawing from the first half of that
# second leaves the other half for the way to the database and back.
_SHORTEST_REST = 1.0
_REST_SPREAD = 0.5


class FloodKind(enum.Enum):
    """What a wait is about, and so what it stops."""

    FLOOD = "FLOOD_WAIT"  # the method, for this account
    PREMIUM = "FLOOD_PREMIUM_WAIT"  # this one part of a transfer: pacing, not punishment
    SLOWMODE = "SLOWMODE_WAIT"  # this chat, for this account


_TYPED = {
    "FloodWait": FloodKind.FLOOD,
    "FloodPremiumWait": FloodKind.PREMIUM,
    "SlowmodeWait": FloodKind.SLOWMODE,
}


@dataclass(frozen=True, slots=True)
class Flood:
    """A wait of ``seconds``, as Telegram named it."""

    kind: FloodKind
    seconds: int

    @property
    def name(self) -> str:
        """The error as Telegram spells it."""
        return f"{self.kind.value}_{self.seconds}"

    def hold(self, draw: float) -> float:
        """Seconds from the refusal to the next call; ``draw`` in 0…1 spreads those who wait alike."""
        return self.seconds + _SHORTEST_REST + _REST_SPREAD * draw


def recognise(error: BaseException) -> Flood | None:
    """Say which wait an error asks for, if any."""
    return _typed(error) or read(str(error))


def read(text: str) -> Flood | None:
    """Say which wait a text asks for, if any."""
    named, told = _NAMED.search(text), _TOLD.search(text)
    if named is None and told is None:
        return None
    kind = FloodKind(named[1].upper()) if named else FloodKind.FLOOD
    length = named[2] if named and named[2] else told[1] if told else None
    return Flood(kind, _UNKNOWN_LENGTH if length is None else max(1, int(length)))


def _typed(error: BaseException) -> Flood | None:
    """Read the client library's own classes by their names: this layer does not import the library."""
    kind = next((_TYPED[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _TYPED), None)
    if kind is None:
        return None
    length = getattr(error, "value", None)
    return Flood(kind, max(1, length) if isinstance(length, int) else _UNKNOWN_LENGTH)
