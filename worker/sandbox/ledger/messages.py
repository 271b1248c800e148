"""Messages, the ids that make sending them repeatable, and the numbered events that updates are made of."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.sandbox.ledger.rows import Message, build, maybe

if TYPE_CHECKING:
    from worker.sandbox.ledger.database import Database


@dataclass(frozen=True, slots=True)
class Window:
    """Which messages of a box are asked for, in the terms of messages.getHistory."""

    offset_id: int = 0
    offset_date: int = 0
    add_offset: int = 0
    limit: int = 100
    max_id: int = 0
    min_id: int = 0
    first_id: int = 0
    peer_id: int | None = None
    kinds: tuple[str, ...] = ()
    text: str = ""
    topic_id: int | None = None
    from_id: int | None = None
    min_date: int = 0
    max_date: int = 0
    # Search does not find everything on the real server either; history does.
    searched: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a box's pts."""

    pts: int
    pts_count: int
    kind: str
    ids: tuple[int, ...]


class Messages:
    """The tables ``messages``, ``random_ids`` and ``events``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def _owner(self, box: int) -> tuple[str, str, int]:
        return ("channels", "channel_id", box) if box > 0 else ("accounts", "user_id", -box)

    def pts(self, box: int) -> int:
        table, column, key = self._owner(box)
        return int(self._db.value(f"SELECT pts FROM {table} WHERE {column} = ?", key) or 0)  # noqa: S608 - two literals

    def _event(self, box: int, kind: str, ids: list[int], pts_count: int) -> int:
        table, column, key = self._owner(box)
        pts = self._db.value(
            f"UPDATE {table} SET pts = pts + ? WHERE {column} = ? RETURNING pts",  # noqa: S608 - two literals
            pts_count,
            key,
        )
        self._db.insert("events", box=box, pts=pts, pts_count=pts_count, kind=kind, ids=json.dumps(ids))
        return int(pts)

    def add(
        self, box: int, from_id: int, *, opens_topic: bool = False, **columns: Any
    ) -> tuple[Message, int]:
        """Append a message, remember its ``random_id`` and return it with the box's new pts, all at once."""
        table, column, key = self._owner(box)
        with self._db.transaction():
            message_id = self._db.value(
                f"UPDATE {table} SET last_id = last_id + 1 WHERE {column} = ? RETURNING last_id",  # noqa: S608 - two literals
                key,
            )
            if opens_topic:
                columns["topic_id"] = message_id
            self._db.insert(
                "messages", box=box, id=message_id, from_id=from_id, date=int(time.time()), **columns
            )
            if columns.get("random_id") is not None:
                self._db.insert(
                    "random_ids",
                    user_id=from_id,
                    box=box,
                    peer_id=columns.get("peer_id") or 0,
                    random_id=columns["random_id"],
                    message_id=message_id,
                )
            pts = self._event(box, "new", [message_id], 1)
        message = self.get(box, message_id)
        assert message is not None
        return message, pts

    def get(self, box: int, message_id: int) -> Message | None:
        """Return a message that was not deleted."""
        row = self._db.one("SELECT * FROM messages WHERE box = ? AND id = ? AND NOT deleted", box, message_id)
        return maybe(Message, row)

    def by_random_id(self, user_id: int, box: int, peer_id: int, random_id: int) -> Message | None:
        """Return what this account sent here with this id before, deleted or not."""
        row = self._db.one(
            "SELECT m.* FROM random_ids r JOIN messages m ON m.box = r.box AND m.id = r.message_id"
            " WHERE r.user_id = ? AND r.box = ? AND r.peer_id = ? AND r.random_id = ?",
            user_id,
            box,
            peer_id,
            random_id,
        )
        return maybe(Message, row)

    def edit(self, message: Message, **columns: Any) -> tuple[Message, int]:
        names = ", ".join(f"{name} = ?" for name in columns)
        with self._db.transaction():
            self._db.run(
                f"UPDATE messages SET {names}, edit_date = ? WHERE box = ? AND id = ?",  # noqa: S608 - column names are literals of this package
                *columns.values(),
                int(time.time()),
                message.box,
                message.id,
            )
            pts = self._event(message.box, "edit", [message.id], 1)
        edited = self.get(message.box, message.id)
        assert edited is not None
        return edited, pts

    def delete(self, box: int, ids: list[int]) -> tuple[list[int], int]:
        """Delete what exists of these ids; return which did and the box's pts."""
        with self._db.transaction():
            gone = [
                message_id
                for message_id in ids
                if self._db.run(
                    "UPDATE messages SET deleted = 1 WHERE box = ? AND id = ? AND NOT deleted",
                    box,
                    message_id,
                )
            ]
            pts = self._event(box, "delete", gone, len(gone)) if gone else self.pts(box)
        return gone, pts

    def bring_back(self, box: int, ids: list[int]) -> None:
        """Show deleted messages again, as a server does that had lost sight of them."""
        for message_id in ids:
            self._db.run("UPDATE messages SET deleted = 0 WHERE box = ? AND id = ?", box, message_id)

    def hide_from_search(self, box: int, ids: list[int]) -> None:
        """Search will not find these messages; history still shows them."""
        for message_id in ids:
            self._db.run("UPDATE messages SET unsearchable = 1 WHERE box = ? AND id = ?", box, message_id)

    def events_after(self, box: int, pts: int, limit: int) -> list[Event]:
        rows = self._db.all(
            "SELECT * FROM events WHERE box = ? AND pts > ? ORDER BY pts LIMIT ?", box, pts, limit
        )
        return [
            Event(row["pts"], row["pts_count"], row["kind"], tuple(json.loads(row["ids"]))) for row in rows
        ]

    def everything(self, box: int) -> list[Message]:
        """Return all messages of a box, deleted ones too, for the oracle."""
        return [
            build(Message, row)
            for row in self._db.all("SELECT * FROM messages WHERE box = ? ORDER BY id", box)
        ]

    def peers_in(self, box: int) -> list[int]:
        """Return whom a private box has messages with."""
        rows = self._db.all("SELECT DISTINCT peer_id FROM messages WHERE box = ? AND NOT deleted", box)
        return [row["peer_id"] for row in rows]

    def newest(self, box: int, first_id: int = 0, peer_id: int | None = None) -> Message | None:
        found = self.page(box, Window(limit=1, first_id=first_id, peer_id=peer_id))
        return found[0] if found else None

    def count(self, box: int, window: Window) -> int:
        where, values = _conditions(window)
        return int(self._db.value(f"SELECT count(*) FROM messages WHERE box = ? {where}", box, *values))  # noqa: S608 - built of literals

    def page(self, box: int, window: Window) -> list[Message]:
        """Return the window's messages, newest first.

        The window starts ``add_offset`` places below the first message older than ``offset_id`` (above it if
        negative) and is not moved when it sticks out at the newest end: it is just shorter then.
        """
        where, values = _conditions(window)
        if window.max_id:
            where, values = f"{where} AND id < ?", [*values, window.max_id]
        if window.min_id:
            where, values = f"{where} AND id > ?", [*values, window.min_id]
        older, older_values = self._older(window)
        newer_wanted = max(0, -window.add_offset)
        newer: list[Message] = []
        if newer_wanted and older:
            rows = self._db.all(
                f"SELECT * FROM messages WHERE box = ? {where} AND NOT ({older}) ORDER BY id LIMIT ?",  # noqa: S608 - built of literals
                box,
                *values,
                *older_values,
                newer_wanted,
            )
            newest_first = [build(Message, row) for row in reversed(rows)]
            missing = newer_wanted - len(newest_first)
            newer = newest_first[: max(0, window.limit - missing)]
        left = window.limit - max(newer_wanted, 0)
        if left <= 0:
            return newer
        rows = self._db.all(
            f"SELECT * FROM messages WHERE box = ? {where} {'AND ' + older if older else ''}"  # noqa: S608 - built of literals
            " ORDER BY id DESC LIMIT ? OFFSET ?",
            box,
            *values,
            *older_values,
            left,
            max(0, window.add_offset),
        )
        return newer + [build(Message, row) for row in rows]

    def _older(self, window: Window) -> tuple[str, list[Any]]:
        if window.offset_id:
            return "id < ?", [window.offset_id]
        if window.offset_date:
            return "date < ?", [window.offset_date]
        return "", []


def _conditions(window: Window) -> tuple[str, list[Any]]:
    parts, values = ["AND NOT deleted AND id >= ?"], [window.first_id]
    if window.searched:
        parts.append("AND NOT unsearchable")
    if window.peer_id is not None:
        parts.append("AND peer_id = ?")
        values.append(window.peer_id)
    if window.kinds:
        parts.append(f"AND kind IN ({', '.join('?' * len(window.kinds))})")
        values.extend(window.kinds)  # type: ignore[arg-type]  # SQLite takes numbers and texts alike
    if window.text:
        parts.append("AND text LIKE ? ESCAPE '\\'")
        escaped = window.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values.append(f"%{escaped}%")  # type: ignore[arg-type]  # see above
    if window.topic_id is not None:
        parts.append("AND coalesce(topic_id, 1) = ?")
        values.append(window.topic_id)
    if window.min_date:
        parts.append("AND date > ?")
        values.append(window.min_date)
    if window.max_date:
        parts.append("AND date < ?")
        values.append(window.max_date)
    if window.from_id is not None:
        parts.append("AND from_id = ?")
        values.append(window.from_id)
    return " ".join(parts), values
