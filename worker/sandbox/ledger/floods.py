"""Flood waits that were handed out, so that a call made before its time is noticed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database

# For so long after a refusal calls arrive that left before it was read.
ON_ITS_WAY_SECONDS = 0.5
# FLOOD_PREMIUM_WAIT slows one file part, SLOWMODE_WAIT one chat: neither forbids the method.
_WAIT = re.compile(r"FLOOD_WAIT_(\d+)")


class Floods:
    """The table ``floods``: until when an account may not call a method."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._begun: dict[tuple[int, str], float] = {}

    def note(self, user_id: int, method: str, error: str) -> None:
        """Remember the wait an answer asked for; a shorter one does not shorten it."""
        asked = _WAIT.fullmatch(error)
        if asked is None:
            return
        now = time.time()
        if now >= (self._until(user_id, method) or 0.0):
            self._begun[user_id, method] = now
        self._db.run(
            "INSERT INTO floods VALUES (?, ?, ?) ON CONFLICT (user_id, method)"
            " DO UPDATE SET until = max(until, excluded.until)",
            user_id,
            method,
            now + int(asked[1]),
        )

    def is_early(self, user_id: int, method: str, at: float) -> bool:
        """Whether a wait forbade the call, and whoever made it must have known."""
        until = self._until(user_id, method)
        known = self._begun.get((user_id, method), 0.0) + ON_ITS_WAY_SECONDS
        return until is not None and known < at < until

    def _until(self, user_id: int, method: str) -> float | None:
        until: float | None = self._db.value(
            "SELECT until FROM floods WHERE user_id = ? AND method = ?", user_id, method
        )
        return until
