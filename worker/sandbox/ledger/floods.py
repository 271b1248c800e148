"""Flood waits that were handed out, so that a call made before its time is noticed."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database

# FLOOD_PREMIUM_WAIT slows one file part, SLOWMODE_WAIT one chat: neither forbids the method.
_WAIT = re.compile(r"FLOOD_WAIT_(\d+)")


class Floods:
    """The table ``floods``: until when an account may not call a method."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def note(self, user_id: int, method: str, error: str) -> None:
        """Remember the wait an answer asked for; a shorter one does not shorten it."""
        asked = _WAIT.fullmatch(error)
        if asked is None:
            return
        self._db.run(
            "INSERT INTO floods VALUES (?, ?, ?) ON CONFLICT (user_id, method)"
            " DO UPDATE SET until = max(until, excluded.until)",
            user_id,
            method,
            time.time() + int(asked[1]),
        )

    def is_early(self, user_id: int, method: str, at: float) -> bool:
        until = self._db.value("SELECT until FROM floods WHERE user_id = ? AND method = ?", user_id, method)
        return until is not None and at < until
