"""The record of calls: collected in memory, written at least once a second, failures at once.

Contract. ``count`` and ``add`` cost no round trip; ``flush`` writes everything collected in one. What could
not be written is kept for the next time, up to a bound beyond which the oldest lines are forgotten: the
record is for people, and must not cost the memory of a long outage.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from worker.domain.calls import Activity, PartCount
from worker.flow.backoff import LOST
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

log = get_logger(__name__)
_MOST_LINES = 10_000


class ActivityLog:
    """Lines and counts that have not been written yet."""

    def __init__(self, write: Callable[[Sequence[Activity], Sequence[PartCount]], Awaitable[None]]) -> None:
        self._write = write
        self._lines: deque[Activity] = deque(maxlen=_MOST_LINES)
        self._counts: Counter[tuple[int, str]] = Counter()

    def __len__(self) -> int:
        return len(self._lines) + len(self._counts)

    def count(self, account: int, method: str, calls: int = 1) -> None:
        """Remember that calls were made, for the window's count."""
        self._counts[account, method] += calls

    def add(self, line: Activity) -> None:
        """Remember a line."""
        self._lines.append(line)

    async def flush(self) -> None:
        """Write what was collected; a database that is away is no reason to stop anything."""
        if not len(self):
            return
        lines, counts = list(self._lines), self._counts
        self._lines.clear()
        self._counts = Counter()
        try:
            await self._write(lines, [PartCount(*key, calls) for key, calls in counts.items()])
        except LOST as error:
            log.warning("governor.activity.kept", lines=len(lines), error=repr(error))
            self._lines.extendleft(reversed(lines))
            self._counts.update(counts)
        except Exception:
            # Whoever flushes is about to tell of something more important than a gap in the record.
            log.exception("governor.activity.lost", lines=len(lines))
