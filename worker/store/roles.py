"""What a person decides about a source: whether it is read, and how what it holds is treated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import UNCHECKED
from worker.errors import UserError
from worker.store.protection import apply_protection

if TYPE_CHECKING:
    from worker.store.database import Database

REMOVED = "its source was removed"

# What is being published is finished; the rest waits until the source is added again.
_LEAVE_OUT = text("""
    UPDATE archive_sets s SET state = 'skipped', reason = :removed, updated_at = fleet_now() FROM channels c
    WHERE c.telegram_id = :channel AND s.channel_id = c.id AND s.state IN ('collecting', 'ready', 'failed')
      AND NOT EXISTS (SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open')
""")
_TAKE_UP = text("""
    UPDATE archive_sets s SET state = 'collecting', to_prove = true, reason = :unchecked,
        not_before = fleet_now(), fence = fence + 1, updated_at = fleet_now()
    FROM channels c WHERE c.telegram_id = :channel AND s.channel_id = c.id AND s.state = 'skipped'
      AND s.reason = :removed
""")


async def remove_source(database: Database, telegram_id: int) -> int:
    """Read the channel no more; how many of its sets are left out for that."""
    async with database.transaction("channels.remove") as connection:
        removed = await connection.execute(
            text("UPDATE channels SET is_source = false WHERE telegram_id = :channel AND is_source"),
            {"channel": telegram_id},
        )
        if not removed.rowcount:
            raise UserError(f"channel {telegram_id} is no source", remedy="see: worker channels list")
        values = {"channel": telegram_id, "removed": REMOVED}
        return (await connection.execute(_LEAVE_OUT, values)).rowcount


async def take_up(database: Database, telegram_id: int) -> int:
    """Have the sets that were left out when the source was removed looked at again."""
    async with database.transaction("channels.take_up") as connection:
        values = {"channel": telegram_id, "removed": REMOVED, "unchecked": UNCHECKED}
        return (await connection.execute(_TAKE_UP, values)).rowcount


async def enable(database: Database, telegram_id: int, *, enabled: bool) -> None:
    """Let a source rest, or go on with it; nothing about it is forgotten."""
    async with database.transaction("channels.enable") as connection:
        changed = await connection.execute(
            text("UPDATE channels SET is_enabled = :enabled WHERE telegram_id = :channel AND is_source"),
            {"channel": telegram_id, "enabled": enabled},
        )
        if not changed.rowcount:
            raise UserError(f"channel {telegram_id} is no source", remedy="run: worker channels add CHANNEL")


async def set_category(database: Database, telegram_id: int, category: str | None) -> None:
    """What the channel's archives are about; it becomes a tag of what is published from here on."""
    async with database.transaction("channels.category") as connection:
        await connection.execute(
            text("UPDATE channels SET category = :category WHERE telegram_id = :channel"),
            {"channel": telegram_id, "category": category},
        )


async def set_policy(
    database: Database, telegram_id: int, *, allow_protected: bool | None, copy_mode: bool | None
) -> int:
    """How protected content is treated, and whether files are copied; None leaves it.

    Returns how many sets are in line again for it.
    """
    async with database.transaction("channels.policy") as connection:
        await connection.execute(
            text("""
                UPDATE channels SET
                    allow_protected = coalesce(CAST(:allow AS boolean), allow_protected),
                    copy_mode = coalesce(CAST(:copy AS boolean), copy_mode)
                WHERE telegram_id = :channel
            """),
            {"channel": telegram_id, "allow": allow_protected, "copy": copy_mode},
        )
        return await apply_protection(connection, telegram_id)
