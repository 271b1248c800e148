"""Who owns an account, and until when connections of an owner may be open.

The owner is whoever holds the account's advisory lock and stands in the account's row with the current epoch,
which grows by one per owner. ``lease_until`` is when the last connection of a silent owner is certainly down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from uuid import UUID

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class Tenure:
    """One worker's turn with an account; ``seconds`` is how far each heartbeat moves its end."""

    account_id: int
    worker_id: UUID
    epoch: int
    seconds: float


# A heartbeat: runs on the connection that holds the lock, so that one answer proves both.
RENEW = """
    UPDATE accounts SET lease_until = fleet_now() + $4 * interval '1 second'
    WHERE id = $1 AND worker_id = $2 AND lease_epoch = $3 RETURNING true
"""

# A stopped process keeps its connections: the server takes them for alive, whatever has become of the lease.
# A session that holds the account beside one of its own, whose lease lasts, belongs to whoever takes it over.
END_SILENT_OWNER = """
    SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN accounts a ON a.id = $2
    WHERE l.locktype = 'advisory' AND l.classid = $1::int::oid AND l.objid = $2::int::oid AND l.objsubid = 2
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND a.lease_until < fleet_now()
      AND NOT EXISTS (
          SELECT FROM pg_locks g JOIN accounts o ON o.id::int::oid = g.objid AND o.id <> a.id
          WHERE g.pid = l.pid AND g.locktype = 'advisory' AND g.classid = l.classid AND g.objsubid = 2
            AND g.database = l.database AND o.lease_until >= fleet_now())
"""


async def begin_tenure(
    database: Database, account_id: int, worker_id: UUID, seconds: float
) -> tuple[Tenure, float]:
    """Write down the new owner; the tenure, and how long connections of the last owner may still be open.

    Only called while holding the account's advisory lock.
    """
    async with database.transaction("accounts.lease") as connection:
        row = (
            await connection.execute(
                text("""
                    WITH old AS (SELECT id, lease_until FROM accounts WHERE id = :account FOR UPDATE)
                    UPDATE accounts a SET worker_id = :worker, lease_epoch = a.lease_epoch + 1,
                        lease_until = greatest(old.lease_until, fleet_now() + :seconds * interval '1 second')
                    FROM old WHERE a.id = old.id
                    RETURNING a.lease_epoch AS epoch,
                        coalesce(extract(epoch FROM old.lease_until - fleet_now()), 0)::float8 AS remaining
                """),
                {"account": account_id, "worker": worker_id, "seconds": seconds},
            )
        ).one()
    return Tenure(account_id, worker_id, row.epoch, seconds), max(0.0, float(row.remaining))


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


async def lease_left(database: Database, account_id: int) -> float:
    """How long connections of the last owner that ended without a word may still be open, in seconds."""
    async with database.reading() as connection:
        query = text("""
            SELECT greatest(0, coalesce(extract(epoch FROM lease_until - fleet_now()), 0))::float8
            FROM accounts WHERE id = :account
        """)
        return float((await connection.execute(query, {"account": account_id})).scalar_one())
