"""Too many connections from one address: for a while nobody on this host opens another one.

Telegram answers with transport error -429 and counts all connections of an address, whichever process and
account they belong to. One process hears of it; the others have to be told (``worker.fleet.crowded_host``).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

log = get_logger(__name__)
# Until the host's other processes know, and how long the pause is, is decided for all of them together.
_AT_ONCE_SECONDS = 5.0


class Crowding:
    """What one process knows of it. May be asked and told from any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until = float("-inf")
        self._has_news = False

    def seconds_left(self) -> float:
        """How long no other connection may be opened."""
        return max(0.0, self._until - self._now())

    def refused(self) -> None:
        """The server has had enough of this host's connections."""
        if not self._has_news:
            log.warning("host.crowded", pause_seconds=_AT_ONCE_SECONDS)
        self._has_news = True
        self.hold(_AT_ONCE_SECONDS)

    def take_news(self) -> bool:
        """Whether it was refused since this was asked last."""
        news, self._has_news = self._has_news, False
        return news

    def hold(self, seconds: float) -> None:
        """Open none for so long; a longer pause that is known already stays."""
        if seconds > 0:
            self._until = max(self._until, self._now() + seconds)
