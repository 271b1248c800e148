"""How long to wait before trying again, and after what that makes sense.

Contract. The n-th delay is ``first`` times ``factor`` to the power of n, give or take ``jitter`` of itself
so that many callers do not come back in step, and never more than ``cap``. Pure: the caller draws the
random number and does the waiting.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from worker.errors import RetryableError

LOST = (RetryableError, ConnectionError, TimeoutError, socket.gaierror)
"""The connection broke, was refused, or the server's name could not be resolved."""

_LARGEST_EXPONENT = 64  # far beyond every cap, and short of what a float can hold


@dataclass(frozen=True, slots=True)
class Backoff:
    """A schedule of delays in seconds; ``retries`` is how often a caller should try again at all."""

    first: float = 0.1
    factor: float = 2.0
    cap: float = 60.0
    jitter: float = 0.1
    retries: int = 5

    def delay(self, attempt: int, draw: float = 0.5) -> float:
        """Seconds before retry number ``attempt`` (from 0); ``draw`` in 0…1 places it within the jitter."""
        base = min(self.first * self.factor ** min(attempt, _LARGEST_EXPONENT), self.cap)
        return min(base * (1 + self.jitter * (2 * draw - 1)), self.cap)
