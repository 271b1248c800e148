"""Documents and the uploads they come from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from worker.sandbox.ledger.database import new_id
from worker.sandbox.ledger.rows import Document, maybe

if TYPE_CHECKING:
    import sqlite3

    from worker.sandbox.ledger.database import Database


class Documents:
    """The tables ``documents``, ``uploads`` and ``upload_parts``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, document_id: int, **columns: Any) -> Document:
        self._db.insert(
            "documents", document_id=document_id, access_hash=new_id(), date=int(time.time()), **columns
        )
        document = self.get(document_id)
        assert document is not None
        return document

    def get(self, document_id: int) -> Document | None:
        row = self._db.one("SELECT * FROM documents WHERE document_id = ?", document_id)
        return maybe(Document, row)

    def set_sha256(self, document_id: int, sha256: str) -> None:
        self._db.run("UPDATE documents SET sha256 = ? WHERE document_id = ?", sha256, document_id)

    def upload(self, user_id: int, file_id: int) -> sqlite3.Row | None:
        return self._db.one("SELECT * FROM uploads WHERE user_id = ? AND file_id = ?", user_id, file_id)

    def begin_upload(self, user_id: int, file_id: int, *, big: bool, total: int) -> None:
        self._db.insert(
            "uploads", user_id=user_id, file_id=file_id, big=int(big), total=total, started_at=time.time()
        )

    def save_part(self, user_id: int, file_id: int, part: int, size: int) -> None:
        self._db.run("INSERT OR REPLACE INTO upload_parts VALUES (?, ?, ?, ?)", user_id, file_id, part, size)

    def part_size(self, user_id: int, file_id: int, *, before: int) -> int | None:
        """Return the size of some part that is not the last, None while only one is there."""
        size = self._db.value(
            "SELECT size FROM upload_parts WHERE user_id = ? AND file_id = ? AND part < ? LIMIT 1",
            user_id,
            file_id,
            before,
        )
        return None if size is None else int(size)

    def parts(self, user_id: int, file_id: int) -> dict[int, int]:
        """Return the size of every part that is there."""
        rows = self._db.all(
            "SELECT part, size FROM upload_parts WHERE user_id = ? AND file_id = ? ORDER BY part",
            user_id,
            file_id,
        )
        return {row["part"]: row["size"] for row in rows}

    def uploaded_as(self, user_id: int, file_id: int, document_id: int) -> None:
        """The upload has become this document; sending it again names the same one."""
        with self._db.transaction():
            self._db.run(
                "UPDATE uploads SET document_id = ? WHERE user_id = ? AND file_id = ?",
                document_id,
                user_id,
                file_id,
            )
            self._db.run("DELETE FROM upload_parts WHERE user_id = ? AND file_id = ?", user_id, file_id)

    def lose_parts(self, user_id: int, parts: list[int]) -> int:
        """Forget parts of the account's unfinished uploads, as the real server does after some hours."""
        return sum(
            self._db.run("DELETE FROM upload_parts WHERE user_id = ? AND part = ?", user_id, part)
            for part in parts
        )
