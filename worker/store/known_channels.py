"""The channels that accounts see, as a person names and lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import UserError

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class KnownChannel:
    """A channel that some account sees, and what it is for."""

    id: int
    telegram_id: int
    title: str
    username: str | None
    kind: str
    role: str


_KNOWN = """
    SELECT id, telegram_id, title, username, kind,
        CASE WHEN is_destination THEN 'destination' WHEN is_source THEN 'source' ELSE '' END
    FROM channels
"""
_ALL = text(f"{_KNOWN} ORDER BY is_destination DESC, is_source DESC, title")
_NAMED = text(f"""
    {_KNOWN}
    WHERE CAST(telegram_id AS text) = :named OR lower(username) = lower(ltrim(:named, '@'))
       OR lower(title) = lower(:named)
    ORDER BY id LIMIT 2
""")


async def known_channels(database: Database) -> list[KnownChannel]:
    """All of them, those in use first."""
    async with database.reading() as connection:
        return [KnownChannel(*row) for row in await connection.execute(_ALL)]


async def find_channel(database: Database, named: str) -> KnownChannel:
    """The channel that a person means by its id, @username or title."""
    async with database.reading() as connection:
        found = [KnownChannel(*row) for row in await connection.execute(_NAMED, {"named": named})]
    if not found:
        raise UserError(
            f"no account has seen a channel {named}", remedy="give its id, @username or exact title"
        )
    if len(found) > 1:
        raise UserError(f"several channels are called {named}", remedy="give the id or the @username")
    return found[0]
