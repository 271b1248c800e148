"""Who was connected from where and when, and which calls were made: the oracle of crash tests."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call; ``at`` is when it began, ``early`` whether a flood wait forbade it then,
    ``chat`` the channel it addressed, if it did."""

    at: float
    key_id: int
    user_id: int | None
    method: str
    error: str
    address: str
    early: bool
    chat: int | None


class Journal:
    """The tables ``connections`` and ``calls``."""

    def __init__(self, db: Database) -> None:
        self._db = db
        # Connections of a server that was killed ended with it, at the latest when this one starts.
        db.run("UPDATE connections SET disconnected_at = ? WHERE disconnected_at IS NULL", time.time())

    def connected(self, key_id: int, user_id: int | None, address: str) -> int:
        return self._db.insert(
            "connections", key_id=key_id, user_id=user_id, address=address, connected_at=time.time()
        )

    def authorised(self, connection_id: int, user_id: int) -> None:
        self._db.run("UPDATE connections SET user_id = ? WHERE connection_id = ?", user_id, connection_id)

    def disconnected(self, connection_id: int) -> None:
        self._db.run(
            "UPDATE connections SET disconnected_at = ? WHERE connection_id = ?", time.time(), connection_id
        )

    def call(self, call: CallRecord) -> None:
        self._db.insert("calls", ok=int(not call.error), **asdict(call))

    def connections(self) -> list[dict[str, Any]]:
        rows = self._db.all(
            "SELECT c.key_id AS auth_key_id, a.phone, c.address, c.connected_at, c.disconnected_at"
            " FROM connections c LEFT JOIN accounts a USING (user_id) ORDER BY connection_id"
        )
        return [dict(row) for row in rows]

    def calls(self, method: str | None, after: int) -> list[dict[str, Any]]:
        rows = self._db.all(
            "SELECT c.call_id AS id, c.at, a.phone, c.method, c.ok, c.error, c.address, c.early, c.chat,"
            " c.key_id AS auth_key_id FROM calls c LEFT JOIN accounts a USING (user_id)"
            " WHERE (? IS NULL OR c.method = ?) AND c.call_id > ? ORDER BY call_id",
            method,
            method,
            after,
        )
        return [{**dict(row), "ok": bool(row["ok"]), "early": bool(row["early"])} for row in rows]
