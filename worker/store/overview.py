"""Figures over everything: how many sets are in which state, and what waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class WaitingSet:
    """A set that is not being worked on, and why."""

    set_id: int
    name: str
    channel: str
    state: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """What became of one set."""

    name: str
    channel: str
    state: str
    size: int
    package_id: int | None
    file_count: int | None
    reason: str | None


async def count_sets(database: Database) -> dict[str, int]:
    """Sets by state."""
    async with database.reading() as connection:
        rows = await connection.execute(text("SELECT state, count(*) AS n FROM archive_sets GROUP BY state"))
        return {row.state: row.n for row in rows}


async def waiting_sets(database: Database, limit: int = 50) -> list[WaitingSet]:
    """Sets that are ready, collecting, claimed or failed, those that move next first."""
    async with database.reading() as connection:
        rows = await connection.execute(
            text("""
                SELECT s.id, s.name, c.title, s.state, coalesce(s.reason, '') AS reason,
                       greatest(0, extract(epoch FROM s.not_before - fleet_now()))::float8 AS seconds
                FROM archive_sets s JOIN channels c ON c.id = s.channel_id
                WHERE s.state IN ('ready', 'collecting', 'claimed', 'failed')
                ORDER BY s.not_before LIMIT :limit
            """),
            {"limit": limit},
        )
        return [WaitingSet(*row) for row in rows]


async def all_outcomes(database: Database, limit: int = 1000) -> list[SetOutcome]:
    """Every set and what became of it, in the order in which they were posted."""
    async with database.reading() as connection:
        rows = await connection.execute(
            text("""
                SELECT s.name, c.title, s.state, s.total_size, s.package_id, p.file_count, s.reason
                FROM archive_sets s JOIN channels c ON c.id = s.channel_id
                LEFT JOIN packages p ON p.id = s.package_id ORDER BY c.id, s.id LIMIT :limit
            """),
            {"limit": limit},
        )
        return [SetOutcome(*row) for row in rows]


async def published_bytes(database: Database) -> int:
    """How many bytes the destination holds for us."""
    async with database.reading() as connection:
        total: int = (
            await connection.execute(
                text("SELECT coalesce(sum(file_size), 0)::bigint FROM packages WHERE state = 'published'")
            )
        ).scalar_one()
        return total
