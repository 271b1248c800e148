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
    part_count: int
    message_count: int | None
    marks: list[str] | None
    reason: str | None

    @property
    def is_split(self) -> bool:
        """Whether the destination holds it in more files than it was posted in."""
        return self.message_count is not None and self.message_count > self.part_count


@dataclass(frozen=True, slots=True)
class Scanned:
    """How many sources were read to their end, out of how many, and the messages seen in them."""

    channels: int
    of_channels: int
    messages: int


# Relies on archive_sets_state, and reads nothing but that index.
_COUNTS = text("SELECT state, count(*) AS n FROM archive_sets GROUP BY state")
_SCANNED = text("""
    SELECT count(*) FILTER (WHERE at_top), count(*), coalesce(CAST(sum(seen) AS bigint), 0) FROM (
        SELECT coalesce(bool_and(cu.scanned_at IS NOT NULL AND (cu.last_message_id = cu.newest_message_id
                                                                       OR cu.unreadable IS NOT NULL)),
                        false) AS at_top,
               sum(cu.messages_seen) AS seen
        FROM channels c LEFT JOIN scan_cursors cu ON cu.channel_id = c.id
        WHERE c.is_source AND c.is_enabled GROUP BY c.id
    ) each_source
""")
# Chosen before they are joined: the planner cannot know how few lie in the future, and would sort them all.
_HELD = """
    SELECT s.id, s.name, c.title, s.state, s.reason,
           greatest(0, extract(epoch FROM s.not_before - fleet_now()))::float8 AS seconds
    FROM (
        SELECT * FROM archive_sets WHERE reason IS NOT NULL AND {which} LIMIT :limit
    ) s JOIN channels c ON c.id = s.channel_id ORDER BY s.not_before {order}, s.id {order}
"""
# All three rely on archive_sets_held_back.
_HELD_BACK = text(
    _HELD.format(which="state = 'ready' AND not_before > fleet_now() ORDER BY not_before", order="ASC")
)
_GIVEN_UP = text(_HELD.format(which="state = 'failed' ORDER BY not_before DESC", order="DESC"))
_COUNT_HELD_BACK = text("""
    SELECT count(*) FROM archive_sets
    WHERE state = 'ready' AND reason IS NOT NULL AND not_before > fleet_now()
""")


async def count_sets(database: Database) -> dict[str, int]:
    """Sets by state."""
    async with database.reading() as connection:
        return {row.state: row.n for row in await connection.execute(_COUNTS)}


async def scanned_sources(database: Database) -> Scanned:
    """How far the sources were read."""
    async with database.reading() as connection:
        return Scanned(*(await connection.execute(_SCANNED)).one())


async def held_back_sets(database: Database, limit: int = 10) -> list[WaitingSet]:
    """Ready sets that may not be claimed yet, those that move first first."""
    async with database.reading() as connection:
        return [WaitingSet(*row) for row in await connection.execute(_HELD_BACK, {"limit": limit})]


async def given_up_sets(database: Database, limit: int = 5) -> list[WaitingSet]:
    """Sets that wait for a person, the latest first."""
    async with database.reading() as connection:
        return [WaitingSet(*row) for row in await connection.execute(_GIVEN_UP, {"limit": limit})]


async def count_held_back(database: Database) -> int:
    """How many ready sets may not be claimed yet."""
    async with database.reading() as connection:
        waiting: int = (await connection.execute(_COUNT_HELD_BACK)).scalar_one()
        return waiting


async def waiting_sets(database: Database, limit: int = 50) -> list[WaitingSet]:
    """Sets that are ready, collecting, claimed or failed, those that move next first.

    What an account has begun that does not work waits for that, whatever was said of it last.
    """
    async with database.reading() as connection:
        rows = await connection.execute(
            text("""
                SELECT s.id, s.name, c.title, s.state, coalesce(
                           (SELECT 'account ' || a.id || ' has begun to publish it and does not work — log it'
                                || ' in, or end the upload: worker recover --give-up ' || s.id
                            FROM uploads u JOIN accounts a ON a.id = u.account_id
                            WHERE u.set_id = s.id AND u.state = 'open' AND a.state <> 'ready'),
                           s.reason, '') AS reason,
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
                SELECT s.name, c.title, s.state, s.total_size, s.package_id, p.file_count, s.part_count,
                       p.part_count, p.marks, s.reason
                FROM archive_sets s JOIN channels c ON c.id = s.channel_id
                LEFT JOIN packages p ON p.id = s.package_id ORDER BY c.id, s.id LIMIT :limit
            """),
            {"limit": limit},
        )
        return [SetOutcome(*row) for row in rows]
