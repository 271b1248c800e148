"""Who owns an account: what its row says of that, and what changes it.

The owner is whoever holds the account's advisory lock and stands in the account's row with the current epoch,
which grows by one per owner. ``lease_until`` is written by the server's clock, and nothing is decided by it:
it tells people when a silent owner's connections are down, and each heartbeat changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import FenceLostError
from worker.store.locks import account_is_locked, account_locks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Tenure:
    """One worker's turn with an account; ``seconds`` is how long its connections may outlive a heartbeat."""

    account_id: int
    worker_id: UUID
    epoch: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Mark:
    """What every heartbeat and every owner of an account changes.

    Another start of the server, or another server, makes it another mark: a standby may not have received the
    last heartbeats, and what stands there says nothing of how old it is.
    """

    worker_id: UUID | None
    epoch: int
    until: datetime | None
    server: datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """An account's owner at one look, and every account whose lock the same session holds, this one too.

    ``plausible`` is whether the row looks like that of an owner who has given a sign of life just now. Clocks
    may be wrong: nothing is decided by it but whether to look twice.
    """

    account_id: int
    mark: Mark
    locked: bool
    plausible: bool
    marks: Mapping[int, Mark]
    patience: Mapping[int, float | None]

    def has_moved_since(self, before: Seen) -> bool:
        """Whether a sign of life was given meanwhile; a server that started again is none."""
        return any(
            number in before.marks and replace(before.marks[number], server=mark.server) != mark
            for number, mark in self.marks.items()
        )


# A heartbeat: runs on the connection that holds the lock, so that one answer proves both.
RENEW = """
    UPDATE accounts SET lease_until = fleet_now() + $4 * interval '1 second'
    WHERE id = $1 AND worker_id = $2 AND lease_epoch = $3 RETURNING true
"""

# A new owner, on the connection that holds the lock too; nothing if the mark is not the one that was seen.
BEGIN = """
    UPDATE accounts SET worker_id = $2, lease_epoch = lease_epoch + 1, lease_seconds = $3::float8,
        lease_until = fleet_now() + $3::float8 * interval '1 second'
    WHERE id = $1 AND worker_id IS NOT DISTINCT FROM $4::uuid AND lease_epoch = $5::bigint
      AND lease_until IS NOT DISTINCT FROM $6::timestamptz AND pg_postmaster_start_time() = $7::timestamptz
    RETURNING lease_epoch
"""

# A stopped process keeps its connections: the server takes them for alive, whatever has become of the lease.
# A session that holds the account beside one of its own belongs to whoever takes it over, and ends with that
# one: no account whose lock it holds may have given a sign of life.
END_SILENT_OWNER = f"""
    SELECT pg_terminate_backend(l.pid, 5000) FROM {account_locks("l")}
      AND l.objid = $1::int::oid AND pg_postmaster_start_time() = $5::timestamptz
      AND NOT EXISTS (
          SELECT FROM {account_locks("g")} AND g.pid = l.pid AND NOT EXISTS (
              SELECT FROM accounts o
              JOIN unnest($2::int[], $3::bigint[], $4::timestamptz[]) AS still (id, epoch, until)
                ON still.id = o.id AND still.epoch = o.lease_epoch
                   AND still.until IS NOT DISTINCT FROM o.lease_until
              WHERE o.id::int::oid = g.objid))
"""

_LOOK = text(f"""
    SELECT a.id, a.worker_id, a.lease_epoch, a.lease_until, pg_postmaster_start_time() AS server,
           a.lease_seconds, {account_is_locked("a.id")} AS locked,
           coalesce(a.lease_until BETWEEN fleet_now() AND fleet_now()
               + coalesce(a.lease_seconds, :patience) * interval '1 second', false) AS plausible
    FROM accounts a WHERE a.id = :account OR CAST(CAST(a.id AS int) AS oid) IN (
        SELECT beside.objid FROM {account_locks("beside")} AND beside.pid IN (
            SELECT l.pid FROM {account_locks("l")} AND l.objid = CAST(CAST(:account AS int) AS oid)))
""")
_OWNERS = text("""
    SELECT id, worker_id, lease_epoch, lease_until, pg_postmaster_start_time() AS server
    FROM accounts WHERE worker_id IS NOT NULL
""")


async def look(database: Database, account_id: int, *, patience: float) -> Seen | None:
    """Who owns the account; None if there is no such account. ``patience`` is for a row that names none."""
    async with database.reading() as connection:
        found = await connection.execute(_LOOK, {"account": account_id, "patience": patience})
        rows = {row.id: row for row in found}
    if account_id not in rows:
        return None
    own = rows[account_id]
    return Seen(
        account_id,
        _mark(own),
        locked=own.locked,
        plausible=own.plausible,
        marks={number: _mark(row) for number, row in rows.items()},
        patience={number: row.lease_seconds for number, row in rows.items()},
    )


async def owners(database: Database) -> dict[int, Mark]:
    """The marks of all accounts that have an owner, alive or not."""
    async with database.reading() as connection:
        return {row.id: _mark(row) for row in await connection.execute(_OWNERS)}


def _mark(row: Row[tuple[object, ...]]) -> Mark:
    return Mark(row.worker_id, row.lease_epoch, row.lease_until, row.server)


async def require_owner(connection: AsyncConnection, tenure: Tenure) -> None:
    """Refuse this transaction to all but the account's owner; there is no other before it ends."""
    query = text("""
        SELECT 1 FROM accounts WHERE id = :account AND worker_id = :worker AND lease_epoch = :epoch FOR UPDATE
    """)
    values = {"account": tenure.account_id, "worker": tenure.worker_id, "epoch": tenure.epoch}
    if (await connection.execute(query, values)).first() is None:
        raise FenceLostError(f"account {tenure.account_id} has another owner by now")


async def end_tenure(database: Database, tenure: Tenure) -> None:
    """Every connection of the account is closed: the next owner need not wait."""
    async with database.transaction("accounts.release") as connection:
        await connection.execute(
            text("""
                UPDATE accounts SET worker_id = NULL, lease_until = NULL
                WHERE id = :account AND worker_id = :worker AND lease_epoch = :epoch
            """),
            {"account": tenure.account_id, "worker": tenure.worker_id, "epoch": tenure.epoch},
        )
