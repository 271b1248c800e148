"""Which accounts could do an errand, and which of them nobody is running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.accounts import Account
from worker.store.locks import account_is_locked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Reader:
    """A logged-in account that reads certain channels; ``host`` is where it runs, if it does."""

    account: Account
    host: str | None


# Those that nobody runs come first: they are asked without disturbing anybody. A worker that was killed is
# known by the account's lock, which is gone long before its lease: nobody waits for its answer. Its accounts
# come last, since that lease has to be waited out.
_READERS = text(f"""
    SELECT a.id, a.phone, a.display_name, a.is_premium, a.state, a.telegram_user_id,
           CASE WHEN locked.yes AND w.stopped_at IS NULL THEN w.host END AS host
    FROM accounts a
    LEFT JOIN workers w ON w.id = a.worker_id
    CROSS JOIN LATERAL (SELECT {account_is_locked("a.id")} AS yes) locked
    WHERE a.state = 'ready' AND NOT EXISTS (
        SELECT FROM unnest(CAST(:channels AS integer[])) AS wanted (id)
        WHERE NOT EXISTS (SELECT FROM memberships m WHERE m.account_id = a.id AND m.channel_id = wanted.id
                          AND m.can_read AND (NOT :whole OR coalesce(m.visible_from, 0) = 0)))
    ORDER BY CASE WHEN w.id IS NULL THEN 0 WHEN locked.yes THEN 1 ELSE 2 END, a.id
""")


async def readers_of_channels(
    database: Database, channel_ids: Sequence[int], *, whole: bool = False
) -> list[Reader]:
    """The ready accounts that read all of these channels; ``whole``: and may see all of their history."""
    async with database.reading() as connection:
        rows = await connection.execute(_READERS, {"channels": list(set(channel_ids)), "whole": whole})
        return [Reader(Account(*row[:-1]), row.host) for row in rows]
