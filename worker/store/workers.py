"""Workers: which processes live, and what the dead ones left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.locks import account_is_locked
from worker.store.notifications import FLOW, SHARES

if TYPE_CHECKING:
    from uuid import UUID

    from worker.store.database import Database


def is_heard(worker: str) -> str:
    """SQL: whether a worker gave a sign of life lately. One from the future is old: a clock stepped back."""
    return f"""{worker}.heartbeat_at BETWEEN fleet_now() - :silent * interval '1 second'
        AND fleet_now() + :silent * interval '1 second'"""


# A worker that holds the lock of one of its accounts lives, or will be shut out by the account's next owner:
# a clock that steps makes nobody look dead who has claims or runs to lose.
_IS_DEAD = f"""stopped_at IS NULL AND NOT {is_heard("workers")} AND NOT EXISTS (
    SELECT FROM accounts a WHERE a.worker_id = workers.id AND {account_is_locked("a.id")})"""


async def register(
    database: Database, worker_id: UUID, *, host: str, pid: int, version: str, address: str | None
) -> None:
    """Say that this process has started."""
    async with database.transaction("workers.register") as connection:
        await connection.execute(
            text("""
                INSERT INTO workers (id, host, pid, version, address)
                VALUES (:id, :host, :pid, :version, :address)
            """),
            {"id": worker_id, "host": host, "pid": pid, "version": version, "address": address},
        )


async def heartbeat(
    database: Database, worker_id: UUID, memory_bytes: int, *, shares_accounts: bool = False
) -> None:
    """Say that this process lives; one that was presumed dead while it slept is alive again.

    ``shares_accounts`` is whether it takes its share of whatever accounts there are.
    """
    async with database.transaction("workers.heartbeat") as connection:
        await connection.execute(
            text("""
                UPDATE workers SET heartbeat_at = fleet_now(), stopped_at = NULL, memory_bytes = :memory,
                    shares_accounts = :shares
                WHERE id = :id
            """),
            {"id": worker_id, "memory": memory_bytes, "shares": shares_accounts},
        )


async def ask_to_share(database: Database) -> None:
    """Have every worker look at once who runs which account."""
    async with database.transaction("workers.ask_to_share") as connection:
        values = {"channel": FLOW, "what": SHARES}
        await connection.execute(text("SELECT pg_notify(:channel, :what)"), values)


async def stopped(database: Database, worker_id: UUID) -> None:
    """Say that this process has ended its work."""
    async with database.transaction("workers.stopped") as connection:
        await connection.execute(
            text("UPDATE workers SET stopped_at = fleet_now() WHERE id = :id"), {"id": worker_id}
        )


async def start_run(database: Database, worker_id: UUID, account_id: int, *, is_errand: bool = False) -> int:
    """One account begins to work in this process, whose lease shows that nobody else works with it.

    ``is_errand``: a command needs its session; what the account has to do is not brought to its end by that.
    """
    async with database.transaction("runs.start") as connection:
        await connection.execute(
            text("""
                UPDATE runs SET ended_at = fleet_now(), outcome = 'crashed', reason = 'its lease was lost'
                WHERE account_id = :account AND ended_at IS NULL
            """),
            {"account": account_id},
        )
        query = text("""
            INSERT INTO runs (worker_id, account_id, is_errand) VALUES (:worker, :account, :errand)
            RETURNING id
        """)
        values = {"worker": worker_id, "account": account_id, "errand": is_errand}
        run_id: int = (await connection.execute(query, values)).scalar_one()
        return run_id


async def end_run(database: Database, run_id: int, outcome: str, reason: str | None = None) -> None:
    """It ended, and how."""
    async with database.transaction("runs.end") as connection:
        await connection.execute(
            text("""
                UPDATE runs SET ended_at = fleet_now(), outcome = :outcome, reason = :reason
                WHERE id = :id AND ended_at IS NULL
            """),
            {"id": run_id, "outcome": outcome, "reason": reason},
        )


async def bury_dead_workers(database: Database, silent_seconds: float) -> int:
    """Close what silent workers left open: their runs, and their own rows. Claims follow from that.

    A worker that signed off may have left a run too, if its lease was lost before.
    """
    async with database.transaction("workers.bury") as connection:
        result = await connection.execute(
            text(f"""
                WITH dead AS (
                    UPDATE workers SET stopped_at = fleet_now() WHERE {_IS_DEAD}
                    RETURNING id
                )
                UPDATE runs SET ended_at = fleet_now(), outcome = 'crashed', reason = 'the worker fell silent'
                FROM workers w WHERE runs.worker_id = w.id AND runs.ended_at IS NULL
                    AND (w.stopped_at IS NOT NULL OR w.id IN (SELECT id FROM dead))
            """),
            {"silent": silent_seconds},
        )
    return result.rowcount


async def dead_among(database: Database, worker_ids: list[UUID]) -> list[UUID]:
    """Those of these workers that have ended."""
    async with database.reading() as connection:
        query = text("SELECT id FROM workers WHERE id = ANY(:ids) AND stopped_at IS NOT NULL")
        return list((await connection.execute(query, {"ids": worker_ids})).scalars())


async def silent_workers(database: Database, silent_seconds: float) -> list[UUID]:
    """Workers that fell silent and were not buried yet."""
    async with database.reading() as connection:
        query = text(f"SELECT id FROM workers WHERE {_IS_DEAD}")
        return list((await connection.execute(query, {"silent": silent_seconds})).scalars())


async def open_runs_of(database: Database, worker_ids: list[UUID]) -> int:
    """How many runs of these workers were never closed."""
    async with database.reading() as connection:
        query = text("SELECT count(*) FROM runs WHERE worker_id = ANY(:ids) AND ended_at IS NULL")
        return int((await connection.execute(query, {"ids": worker_ids})).scalar_one())
