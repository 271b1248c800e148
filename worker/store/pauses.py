"""Pauses: kept in ``settings`` under ``sync_paused``, announced to every process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.pauses import Pause
from worker.store.notifications import FLOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.store.database import Database

_KEY = "sync_paused"
_PAUSE = text("""
    INSERT INTO settings (key, value, updated_at) VALUES (:key, CAST(:value AS jsonb), fleet_now())
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
""")
_RESUME = text("DELETE FROM settings WHERE key = :key")
_RESUME_ALL = text("DELETE FROM settings WHERE key = :key OR starts_with(key, :key || ':')")
_PAUSES = text("""
    SELECT CAST(value ->> 'account' AS integer), CAST(value ->> 'channel' AS integer),
           CAST(left_over AS double precision), coalesce(value ->> 'by', '')
    FROM settings, LATERAL (
        SELECT extract(epoch FROM updated_at - fleet_now()) + CAST(value ->> 'seconds' AS double precision)
    ) AS span (left_over)
    WHERE (key = :key OR starts_with(key, :key || ':')) AND (left_over IS NULL OR left_over > 0)
""")
_ANNOUNCE = text("SELECT pg_notify(:channel, :what)")


class PauseStore:
    """What ``worker pause`` and ``worker resume`` say, for whoever begins a page or a set."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pauses(self) -> Sequence[Pause]:
        """The pauses in force."""
        async with self._database.reading() as connection:
            return [Pause(*row) for row in await connection.execute(_PAUSES, {"key": _KEY})]

    async def pause(
        self,
        *,
        account: int | None = None,
        channel: int | None = None,
        seconds: float | None = None,
        by: str = "",
    ) -> None:
        """Let the fleet, an account or a channel rest, for a while or until it is resumed."""
        value = json.dumps({"account": account, "channel": channel, "seconds": seconds, "by": by})
        async with self._database.transaction("pauses.pause") as connection:
            await connection.execute(_PAUSE, {"key": _key_of(account, channel), "value": value})
            await connection.execute(_ANNOUNCE, {"channel": FLOW, "what": "pause"})

    async def resume(self, *, account: int | None = None, channel: int | None = None) -> int:
        """End that pause; without account and channel, every pause. Says how many there were."""
        everything = account is None and channel is None
        async with self._database.transaction("pauses.resume") as connection:
            ended = await connection.execute(
                _RESUME_ALL if everything else _RESUME, {"key": _key_of(account, channel)}
            )
            await connection.execute(_ANNOUNCE, {"channel": FLOW, "what": "resume"})
        return ended.rowcount


def _key_of(account: int | None, channel: int | None) -> str:
    parts = [_KEY]
    if account is not None:
        parts.append(f"account={account}")
    if channel is not None:
        parts.append(f"channel={channel}")
    return ":".join(parts)
