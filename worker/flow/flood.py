"""Recognises the waits that Telegram asks for.

Contract. ``recognise`` reads an error, typed or as text, and says which wait it asks for and of what
length; an error that asks for none gives None. A wait of 0 s counts as 1 s, one of unknown length as 60 s,
and one beyond all sense as a year.
"""

from __future__ import annotations

import math
import re

from worker.domain.calls import Flood, FloodKind
from worker.errors import BusyError, DiskTroubleError, NotBeforeError

_NAMED = re.compile(r"\b(FLOOD_PREMIUM_WAIT|FLOOD_WAIT|SLOWMODE_WAIT)(?:_(\d+))?", re.IGNORECASE)
_TOLD = re.compile(r"\bwait of (\d+) seconds?\b", re.IGNORECASE)
_UNKNOWN_LENGTH = 60
# What is longer fits no column, and would end no sooner for whoever waits.
LONGEST = 366 * 24 * 3600
_MOST_DIGITS = 10

# Waits that are asked for by our own disk and our own fleet.
_NOT_TELEGRAMS = (BusyError, DiskTroubleError)
_TYPED = {
    "FloodWait": FloodKind.FLOOD,
    "FloodPremiumWait": FloodKind.PREMIUM,
    "SlowmodeWait": FloodKind.SLOWMODE,
}


def recognise(error: BaseException) -> Flood | None:
    """Say which wait an error asks for, if any."""
    flood = _typed(error) or read(str(error))
    if flood is None and isinstance(error, NotBeforeError) and not isinstance(error, _NOT_TELEGRAMS):
        return Flood(FloodKind.FLOOD, _bounded(math.ceil(error.seconds)))
    return flood


def read(text: str) -> Flood | None:
    """Say which wait a text asks for, if any."""
    named, told = _NAMED.search(text), _TOLD.search(text)
    if named is None and told is None:
        return None
    kind = FloodKind(named[1].upper()) if named else FloodKind.FLOOD
    length = named[2] if named and named[2] else told[1] if told else None
    return Flood(kind, _UNKNOWN_LENGTH if length is None else _bounded(int(length[:_MOST_DIGITS])))


def _bounded(seconds: int) -> int:
    return min(max(1, seconds), LONGEST)


def _typed(error: BaseException) -> Flood | None:
    """Read the client library's own classes by their names: this layer does not import the library."""
    kind = next((_TYPED[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _TYPED), None)
    if kind is None:
        return None
    length = getattr(error, "value", None)
    return Flood(kind, _bounded(length) if isinstance(length, int) else _UNKNOWN_LENGTH)
