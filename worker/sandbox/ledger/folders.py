"""Chat folders, each as the client described it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database


class Folders:
    """The table ``chat_folders``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of(self, user_id: int) -> list[bytes]:
        """Return the account's folders in their order."""
        rows = self._db.all(
            "SELECT description FROM chat_folders WHERE user_id = ? ORDER BY place, folder_id", user_id
        )
        return [row["description"] for row in rows]

    def keep(self, user_id: int, folder_id: int, description: bytes) -> None:
        """Add a folder at the end, or change one where it stands."""
        self._db.run(
            "INSERT INTO chat_folders (user_id, folder_id, place, description) VALUES (?, ?, "
            "(SELECT coalesce(max(place), 0) + 1 FROM chat_folders WHERE user_id = ?), ?)"
            " ON CONFLICT (user_id, folder_id) DO UPDATE SET description = excluded.description",
            user_id,
            folder_id,
            user_id,
            description,
        )

    def drop(self, user_id: int, folder_id: int) -> None:
        self._db.run("DELETE FROM chat_folders WHERE user_id = ? AND folder_id = ?", user_id, folder_id)

    def reorder(self, user_id: int, order: list[int]) -> None:
        """Have these folders stand in this order."""
        with self._db.transaction():
            for place, folder_id in enumerate(order):
                self._db.run(
                    "UPDATE chat_folders SET place = ? WHERE user_id = ? AND folder_id = ?",
                    place,
                    user_id,
                    folder_id,
                )
