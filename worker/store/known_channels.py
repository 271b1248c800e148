"""The channels that accounts see, as a person names and lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.channel_name import ChannelName, NamedBy, channel_name
from worker.errors import UserError

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class KnownChannel:
    """A channel that some account sees, what it is for, and how it is treated."""

    id: int
    telegram_id: int
    title: str
    username: str | None
    kind: str
    role: str
    is_enabled: bool
    category: str | None
    is_protected: bool
    allow_protected: bool
    copy_mode: bool
    readers: int
    posters: int
    topics: int


_KNOWN = """
    SELECT c.id, c.telegram_id, c.title, c.username, c.kind,
        CASE WHEN c.is_destination THEN 'destination' WHEN c.is_source THEN 'source' ELSE '' END,
        c.is_enabled, c.category, c.is_protected, c.allow_protected, c.copy_mode,
        (SELECT count(*) FROM memberships m WHERE m.channel_id = c.id AND m.can_read),
        (SELECT count(*) FROM memberships m WHERE m.channel_id = c.id AND m.can_post),
        (SELECT count(DISTINCT t.topic_id) FROM scan_cursors t WHERE t.channel_id = c.id AND t.topic_id > 0)
    FROM channels c
"""
_ALL = text(f"{_KNOWN} ORDER BY c.is_destination DESC, c.is_source DESC, c.title, c.id")
_NAMED = {
    NamedBy.ID: text(f"{_KNOWN} WHERE CAST(c.telegram_id AS text) = :named LIMIT 2"),
    NamedBy.USERNAME: text(f"{_KNOWN} WHERE lower(c.username) = lower(:named) LIMIT 2"),
    NamedBy.TITLE: text(
        f"{_KNOWN} WHERE lower(c.title) = lower(:named) OR lower(c.username) = lower(:named) LIMIT 2"
    ),
}


async def known_channels(database: Database) -> list[KnownChannel]:
    """All of them, those in use first."""
    async with database.reading() as connection:
        return [KnownChannel(*row) for row in await connection.execute(_ALL)]


async def look_up(database: Database, name: ChannelName) -> KnownChannel | None:
    """The channel of this name, if an account has seen one; a title that several have is refused."""
    query = _NAMED.get(name.by)
    if query is None:
        return None
    async with database.reading() as connection:
        found = [KnownChannel(*row) for row in await connection.execute(query, {"named": name.value})]
    if len(found) > 1:
        raise UserError(f"several channels are called {name.value}", remedy="give the id or the @username")
    return found[0] if found else None


async def find_channel(database: Database, named: str) -> KnownChannel:
    """The channel that a person means by its id, @username, link or title."""
    name = channel_name(named)
    found = await look_up(database, name)
    if found is not None:
        return found
    if name.by is NamedBy.GROUP:
        raise UserError(
            f"{named} is a basic group, in which messages have other numbers for every account",
            remedy="make it a supergroup, or use a channel",
        )
    if name.by is NamedBy.INVITE:
        raise UserError("an invitation names no channel here", remedy="give its id, @username or exact title")
    raise UserError(
        f"no account has seen a channel or supergroup {named}",
        remedy="run: worker channels discover; then give its id, @username or exact title",
    )
