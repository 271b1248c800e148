"""Sets of protected sources: skipped with that reason, and back in line when it no longer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import PROTECTED, UNCHECKED

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


def is_forbidden(channel: str, set_id: str) -> str:
    """SQL: whether this set of this channel (its alias) is protected, and nobody has allowed that."""
    return f"""(NOT {channel}.allow_protected AND ({channel}.is_protected OR EXISTS (
        SELECT FROM source_files f WHERE f.set_id = {set_id} AND f.is_protected)))"""


_FORBIDDEN = is_forbidden("c", "s.id")
# What is being published was begun when it was allowed, and is finished.
_SKIP = text(f"""
    UPDATE archive_sets s SET state = 'skipped', reason = :protected, updated_at = fleet_now() FROM channels c
    WHERE c.telegram_id = :channel AND s.channel_id = c.id AND {_FORBIDDEN}
      AND (s.state = 'ready' OR s.state = 'collecting' AND s.to_prove)
      AND NOT EXISTS (SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open')
""")
_ALLOW = text(f"""
    UPDATE archive_sets s SET state = CASE WHEN s.to_prove THEN 'collecting' ELSE 'ready' END,
        reason = CASE WHEN s.to_prove THEN :unchecked END, not_before = fleet_now(), updated_at = fleet_now()
    FROM channels c
    WHERE c.telegram_id = :channel AND s.channel_id = c.id AND s.state = 'skipped' AND s.reason = :protected
      AND NOT {_FORBIDDEN}
""")


async def apply_protection(connection: AsyncConnection, telegram_id: int) -> int:
    """Have every set of this channel stand as its protection asks; how many are in line again."""
    values = {"channel": telegram_id, "protected": PROTECTED, "unchecked": UNCHECKED}
    await connection.execute(_SKIP, values)
    return (await connection.execute(_ALLOW, values)).rowcount
