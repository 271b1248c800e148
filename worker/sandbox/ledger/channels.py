"""Channels, their members and their topics."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from worker.sandbox.ledger.database import new_id
from worker.sandbox.ledger.rows import Channel, Member, Role, build, maybe

if TYPE_CHECKING:
    import sqlite3

    from worker.sandbox.ledger.database import Database

GENERAL_TOPIC = 1


class Channels:
    """The tables ``channels``, ``members`` and ``topics``."""

    def __init__(self, db: Database, first_id: int) -> None:
        self._db = db
        self._first_id = first_id

    def create(
        self, title: str, creator: int, *, broadcast: bool, about: str = "", forum: bool = False
    ) -> Channel:
        with self._db.transaction():
            newest = self._db.value("SELECT max(channel_id) FROM channels") or self._first_id - 1
            channel_id = newest + 1
            self._db.insert(
                "channels",
                channel_id=channel_id,
                title=title,
                about=about,
                access_hash=new_id(),
                creator=creator,
                date=int(time.time()),
                broadcast=int(broadcast),
                forum=int(forum),
            )
            self.set_role(channel_id, creator, Role.CREATOR)
            if forum:
                self.add_topic(channel_id, GENERAL_TOPIC, "General", 0x6FB9F0, creator)
        return self.need(channel_id)

    def get(self, channel_id: int) -> Channel | None:
        return maybe(Channel, self._db.one("SELECT * FROM channels WHERE channel_id = ?", channel_id))

    def need(self, channel_id: int) -> Channel:
        channel = self.get(channel_id)
        if channel is None:
            raise LookupError(f"there is no channel {channel_id}")
        return channel

    def by_username(self, username: str) -> Channel | None:
        row = self._db.one("SELECT * FROM channels WHERE lower(username) = lower(?)", username)
        return maybe(Channel, row)

    def by_invite(self, invite: str) -> Channel | None:
        return maybe(Channel, self._db.one("SELECT * FROM channels WHERE invite = ?", invite))

    def invite(self, channel_id: int, *, renew: bool = False) -> str:
        """Return the hash of the channel's invite link, making it when there is none."""
        channel = self.need(channel_id)
        if channel.invite and not renew:
            return channel.invite
        invite = secrets.token_urlsafe(12)
        self._db.run("UPDATE channels SET invite = ? WHERE channel_id = ?", invite, channel_id)
        return invite

    def change(self, channel_id: int, **values: object) -> None:
        """Set columns of a channel; names are those of the table."""
        columns = ", ".join(f"{name} = ?" for name in values)
        sql = f"UPDATE channels SET {columns} WHERE channel_id = ?"  # noqa: S608 - column names are literals of this package
        self._db.run(sql, *values.values(), channel_id)

    def set_role(self, channel_id: int, user_id: int, role: Role) -> None:
        channel = self.need(channel_id)
        self._db.run(
            "INSERT INTO members (channel_id, user_id, role, date, first_id) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (channel_id, user_id) DO UPDATE SET role = excluded.role,"
            # Whoever comes back sees no more than a newcomer, and joins anew: that takes people a second.
            " first_id = CASE WHEN role IN ('left', 'kicked') THEN excluded.first_id ELSE first_id END,"
            " date = CASE WHEN role IN ('left', 'kicked') THEN max(excluded.date, date + 1) ELSE date END",
            channel_id,
            user_id,
            role.value,
            int(time.time()),
            channel.last_id + 1 if channel.hidden_history else 0,
        )

    def hide_so_far(self, channel_id: int, user_id: int) -> None:
        """Hide from this member what was posted up to now."""
        self._db.run(
            "UPDATE members SET first_id = ? WHERE channel_id = ? AND user_id = ?",
            self.need(channel_id).last_id + 1,
            channel_id,
            user_id,
        )

    def member(self, channel_id: int, user_id: int) -> Member | None:
        row = self._db.one("SELECT * FROM members WHERE channel_id = ? AND user_id = ?", channel_id, user_id)
        return maybe(Member, row)

    def members(self, channel_id: int) -> list[Member]:
        rows = self._db.all("SELECT * FROM members WHERE channel_id = ? ORDER BY user_id", channel_id)
        return [member for row in rows if (member := build(Member, row)).inside]

    def member_count(self, channel_id: int) -> int:
        inside = "SELECT count(*) FROM members WHERE channel_id = ? AND role NOT IN ('left', 'kicked')"
        return int(self._db.value(inside, channel_id))

    def of(self, user_id: int) -> list[Member]:
        """Return the account's places in all channels it is in."""
        rows = self._db.all("SELECT * FROM members WHERE user_id = ? ORDER BY channel_id", user_id)
        return [member for row in rows if (member := build(Member, row)).inside]

    def set_folder(self, channel_id: int, user_id: int, folder: int) -> None:
        self._db.run(
            "UPDATE members SET folder = ? WHERE channel_id = ? AND user_id = ?", folder, channel_id, user_id
        )

    def set_read(self, channel_id: int, user_id: int, read_max: int) -> None:
        self._db.run(
            "UPDATE members SET read_max = max(read_max, ?) WHERE channel_id = ? AND user_id = ?",
            read_max,
            channel_id,
            user_id,
        )

    def add_topic(self, channel_id: int, topic_id: int, title: str, icon_color: int, creator: int) -> None:
        self._db.insert(
            "topics",
            channel_id=channel_id,
            topic_id=topic_id,
            title=title,
            icon_color=icon_color,
            creator=creator,
            date=int(time.time()),
        )

    def topics(self, channel_id: int) -> list[sqlite3.Row]:
        return self._db.all(
            "SELECT * FROM topics WHERE channel_id = ? AND NOT deleted ORDER BY topic_id", channel_id
        )

    def change_topic(self, channel_id: int, topic_id: int, **values: object) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        sql = f"UPDATE topics SET {columns} WHERE channel_id = ? AND topic_id = ?"  # noqa: S608 - column names are literals of this package
        self._db.run(sql, *values.values(), channel_id, topic_id)
