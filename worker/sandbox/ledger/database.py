"""One SQLite connection, used by the event loop alone."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from typing import TYPE_CHECKING, Any

from worker.sandbox.ledger.schema import ADDED, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Database:
    """Short statements, run where they stand: each takes microseconds, so the loop may wait for them."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._depth = 0
        self._connection.execute("PRAGMA journal_mode = WAL")
        # The ledger has to survive the death of this process, not of the machine: what was handed to
        # the operating system is safe from SIGKILL, and an fsync per file part would dominate every run.
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(SCHEMA)
        for table, column, kind in ADDED:
            if not self.all("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", table, column):
                self._connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything inside at once; nested use joins the outer transaction."""
        if self._depth:
            yield
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        else:
            self._connection.execute("COMMIT")
        finally:
            self._depth -= 1

    def run(self, sql: str, *values: Any) -> int:
        """Execute a statement and return how many rows it touched."""
        return self._connection.execute(sql, values).rowcount

    def one(self, sql: str, *values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        return self._connection.execute(sql, values).fetchall()

    def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row, None if there is no row."""
        row = self._connection.execute(sql, values).fetchone()
        return row[0] if row else None

    def insert(self, table: str, **values: Any) -> int:
        """Insert one row and return its rowid."""
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        cursor = self._connection.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608 - table and columns are literals of this package
            tuple(values.values()),
        )
        return cursor.lastrowid or 0

    def setting(self, key: str, default: str) -> str:
        value = self.value("SELECT value FROM meta WHERE key = ?", key)
        return default if value is None else str(value)

    def set(self, key: str, value: str) -> None:
        self.run(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            key,
            value,
        )


def new_id() -> int:
    """Return a random positive 62-bit number: an access hash, a document id."""
    return secrets.randbits(62) | 1 << 61
