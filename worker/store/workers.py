"""Workers: which processes live, and what the dead ones left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from uuid import UUID

    from worker.store.database import Database


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


async def stopped(database: Database, worker_id: UUID) -> None:
    """Say that this process has ended its work."""
    async with database.transaction("workers.stopped") as connection:
        await connection.execute(
            text("UPDATE workers SET stopped_at = fleet_now() WHERE id = :id"), {"id": worker_id}
        )


async def start_run(database: Database, worker_id: UUID, account_id: int) -> int:
    """One account begins to work in this process."""
    async with database.transaction("runs.start") as connection:
        query = text("INSERT INTO runs (worker_id, account_id) VALUES (:worker, :account) RETURNING id")
        run_id: int = (
            await connection.execute(query, {"worker": worker_id, "account": account_id})
        ).scalar_one()
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
    """Close what silent workers left open: their runs, and their own rows. Claims follow from that."""
    async with database.transaction("workers.bury") as connection:
        result = await connection.execute(
            text("""
                WITH dead AS (
                    UPDATE workers SET stopped_at = fleet_now()
                    WHERE stopped_at IS NULL AND heartbeat_at < fleet_now() - :silent * interval '1 second'
                    RETURNING id
                )
                UPDATE runs SET ended_at = fleet_now(), outcome = 'crashed', reason = 'the worker fell silent'
                FROM dead WHERE runs.worker_id = dead.id AND runs.ended_at IS NULL
            """),
            {"silent": silent_seconds},
        )
    return result.rowcount


async def dead_among(database: Database, worker_ids: list[UUID]) -> list[UUID]:
    """Those of these workers that have ended."""
    async with database.reading() as connection:
        query = text("SELECT id FROM workers WHERE id = ANY(:ids) AND stopped_at IS NOT NULL")
        return list((await connection.execute(query, {"ids": worker_ids})).scalars())
