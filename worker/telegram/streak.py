"""Connections that are lost one after the other: how long to wait before the next, and when to say so.

A single loss is nothing: what was under way is asked for again. Loss after loss, for longer than a call may
take several times over, is trouble between here and Telegram that a person should hear of in words, and
that no amount of asking again at once will cure.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_PAUSE, LONGEST_PAUSE, _MOST_DOUBLINGS = 0.1, 10.0, 16
FEWEST = 6
LOOK_AT_THE_WAY = "look at the network between here and Telegram: proxy, firewall, provider"
TOO_MANY_CONNECTIONS = -429
# Where the pauses go on from when the server has had enough of connections.
_CROWDED = 6
# A connection that lasted this long was none of those that keep breaking.
_STEADY_SECONDS = 10.0


class Streak:
    """The losses in a row. ``seconds`` is for how long they go on before they count as one trouble."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._now = seconds, now
        self._since = self._last_at = 0.0
        self._steady_at: float | None = None
        self.count = 0
        self._crowded = 0
        # Whether the last one was a connection that had been opened, and broke all the same.
        self.flaps = False
        self.reason = ""

    @property
    def pause(self) -> float:
        """How long to wait before the next connection."""
        # The exponent is bounded, or a night without a network would be too large a number.
        doublings = min(max(self.count, self._crowded) - 1, _MOST_DOUBLINGS)
        return min(LONGEST_PAUSE, _FIRST_PAUSE * 2.0**doublings) if doublings >= 0 else 0.0

    def began(self) -> None:
        """A connection was opened and answered; whether it lasts will be seen."""
        self._steady_at = self._now() + _STEADY_SECONDS

    def ended(self) -> None:
        """What goes wrong from here on is another story."""
        self.count = self._crowded = 0

    def crowded(self) -> None:
        """The server wants fewer connections: come back later than after a mere loss."""
        self._crowded = _CROWDED

    def lost(self, reason: str) -> None:
        """One more connection is gone, or could not be opened."""
        now = self._now()
        self.flaps = self._steady_at is not None
        was_steady = self._steady_at is not None and now >= self._steady_at
        self._steady_at = None
        if was_steady or now - self._last_at > self._patience:
            self.count = 0
        if not self.count:
            self._since = now
        self.count += 1
        self._last_at = now
        self.reason = reason

    @property
    def _patience(self) -> float:
        return self._seconds + LONGEST_PAUSE

    @property
    def trouble(self) -> str | None:
        """In words, what keeps happening; None while it may still be chance, or once it is long ago."""
        now = self._now()
        lasted = now - self._since
        if self.count < FEWEST or lasted < self._seconds or now - self._last_at > self._patience:
            return None
        return f"broke {self.count} times within {lasted:.0f} s, the last time because {self.reason}"
