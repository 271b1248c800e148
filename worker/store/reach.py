"""Who can still reach what an open intent needs: its destination, and copies of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.protection import is_forbidden
from worker.store.visibility import sees_set

if TYPE_CHECKING:
    from worker.store.database import Database
    from worker.store.uploads import Intent


@dataclass(frozen=True, slots=True)
class Copy:
    """A set with the bytes of an intent, and an account that can read it."""

    set_id: int
    account_id: int


# Relies on archive_sets_content. A set that is gone itself has failed, and is no copy. Nor is a protected one
# any, also while nobody has noticed that yet.
_COPIES = text(f"""
    SELECT s.id, m.account_id FROM archive_sets s
    JOIN archive_sets own ON own.id = :set JOIN channels c ON c.id = s.channel_id
    JOIN memberships m ON m.channel_id = s.channel_id AND m.can_read
    JOIN accounts a ON a.id = m.account_id AND a.state = 'ready'
    WHERE s.content_hash = :hash AND s.id <> own.id AND s.state = 'ready' AND s.part_count = own.part_count
      AND {sees_set("s.id")} AND NOT {is_forbidden("c", "s.id")}
      AND NOT EXISTS (SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open')
    ORDER BY s.id
""")


async def copies_of(database: Database, intent: Intent) -> list[Copy]:
    """Other sets with the same bytes, once for each account that can read them."""
    async with database.reading() as connection:
        values = {"set": intent.set_id, "hash": intent.content_hash}
        return [Copy(*row) for row in await connection.execute(_COPIES, values)]


async def reads_source(database: Database, account_id: int, set_id: int) -> bool:
    """Whether this account sees every message that the set was posted in."""
    async with database.reading() as connection:
        query = text(f"""
            SELECT 1 FROM archive_sets s JOIN memberships m ON m.channel_id = s.channel_id
            WHERE s.id = :set AND m.account_id = :account AND m.can_read
              AND {sees_set("s.id")}
        """)
        row = await connection.execute(query, {"set": set_id, "account": account_id})
        return row.one_or_none() is not None


async def note_no_access(
    database: Database, account_id: int, channel_id: int, *, still_reads: bool = False
) -> None:
    """Telegram refused this account there; its next list of chats corrects it."""
    async with database.transaction("memberships.closed") as connection:
        await connection.execute(
            text("""
                UPDATE memberships SET can_read = can_read AND :reads, can_post = false,
                    checked_at = fleet_now()
                WHERE account_id = :account AND channel_id = :channel
            """),
            {"account": account_id, "channel": channel_id, "reads": still_reads},
        )


async def may_post(database: Database, account_id: int, channel_id: int) -> bool:
    """Whether this account was last seen with the right to write there."""
    async with database.reading() as connection:
        query = text("""
            SELECT can_post FROM memberships WHERE account_id = :account AND channel_id = :channel
        """)
        row = await connection.execute(query, {"account": account_id, "channel": channel_id})
        return bool(row.scalar_one_or_none())


async def is_gone_destination(database: Database, channel_id: int) -> bool:
    """Whether people have turned away from this destination and no account can read it."""
    async with database.reading() as connection:
        query = text("""
            SELECT NOT c.is_destination AND NOT EXISTS (
                SELECT FROM memberships m JOIN accounts a ON a.id = m.account_id
                WHERE m.channel_id = c.id AND m.can_read AND a.state IN ('ready', 'needs_login', 'frozen'))
            FROM channels c WHERE c.id = :channel
        """)
        return bool((await connection.execute(query, {"channel": channel_id})).scalar_one())


async def title_of(database: Database, channel_id: int) -> str:
    """What the channel is called."""
    async with database.reading() as connection:
        query = text("SELECT title FROM channels WHERE id = :channel")
        return str((await connection.execute(query, {"channel": channel_id})).scalar_one())


async def holder_of(database: Database, account_id: int) -> str:
    """Which process runs this account, in words; empty if none does."""
    async with database.reading() as connection:
        query = text("""
            SELECT w.host, w.pid FROM accounts a JOIN workers w ON w.id = a.worker_id
            WHERE a.id = :account AND w.stopped_at IS NULL
        """)
        row = (await connection.execute(query, {"account": account_id})).one_or_none()
    return "" if row is None else f"process {row.pid} on {row.host}"
