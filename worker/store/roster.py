"""Who is there: accounts with the worker that runs each, and the workers themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.accounts import Account
from worker.store.locks import account_is_locked
from worker.store.workers import is_heard

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class RosterAccount:
    """An account, the worker whose lease on it still runs, and how many uploads it has open."""

    id: int
    phone: str
    display_name: str
    username: str | None
    is_premium: bool
    state: str
    state_reason: str | None
    worker_id: UUID | None
    begun: int = 0


@dataclass(frozen=True, slots=True)
class RosterWorker:
    """A worker that has not signed off; times are seconds before the fleet's now."""

    id: UUID
    host: str
    pid: int
    version: str
    uptime: float
    memory_bytes: int
    heartbeat_age: float


@dataclass(frozen=True, slots=True)
class ShutOut:
    """An account that works but may not post in this channel, and how many uploads it has begun there."""

    account_id: int
    channel: str
    is_destination: bool
    begun: int


# Relies on uploads_open_by_account.
_SHUT_OUT = text("""
    SELECT a.id, c.title, c.is_destination, coalesce(b.begun, 0)
    FROM accounts a CROSS JOIN channels c
    LEFT JOIN memberships m ON m.account_id = a.id AND m.channel_id = c.id
    LEFT JOIN (SELECT account_id, destination_id, count(*) AS begun FROM uploads WHERE state = 'open'
               GROUP BY account_id, destination_id) b ON b.account_id = a.id AND b.destination_id = c.id
    WHERE a.state = 'ready' AND (c.is_destination OR b.begun > 0)
      AND NOT coalesce(m.can_read AND m.can_post, false)
    ORDER BY a.id, c.id
""")
# Relies on uploads_open_by_account.
_ACCOUNTS = text("""
    SELECT id, phone, display_name, username, is_premium, state, state_reason,
           CASE WHEN lease_until > fleet_now() THEN worker_id END,
           (SELECT count(*) FROM uploads u WHERE u.account_id = accounts.id AND u.state = 'open')
    FROM accounts ORDER BY id
""")
# Relies on workers_live.
_WORKERS = text("""
    SELECT id, host, pid, version, CAST(extract(epoch FROM fleet_now() - started_at) AS double precision),
           memory_bytes, CAST(extract(epoch FROM fleet_now() - heartbeat_at) AS double precision)
    FROM workers WHERE stopped_at IS NULL ORDER BY host, started_at LIMIT :limit
""")


async def roster_accounts(database: Database) -> list[RosterAccount]:
    """Every account."""
    async with database.reading() as connection:
        return [RosterAccount(*row) for row in await connection.execute(_ACCOUNTS)]


async def shut_out_accounts(database: Database) -> list[ShutOut]:
    """Accounts that may not post where archives go, or where they have begun to publish some."""
    async with database.reading() as connection:
        return [ShutOut(*row) for row in await connection.execute(_SHUT_OUT)]


async def roster_workers(database: Database, limit: int = 1000) -> list[RosterWorker]:
    """Workers that live, or died without a word and were not buried yet."""
    async with database.reading() as connection:
        rows = await connection.execute(_WORKERS, {"limit": limit})
        return [RosterWorker(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class SharedOut:
    """The accounts that could work, each with the living worker that holds it, and who shares them."""

    accounts: list[tuple[Account, UUID | None]]
    sharers: list[UUID]


_SHARED = text(f"""
    SELECT a.id, a.phone, a.display_name, a.is_premium, a.state, a.telegram_user_id,
           CASE WHEN w.stopped_at IS NULL AND {is_heard("w")}
                     AND (NOT :locked OR {account_is_locked("a.id")})
                THEN w.id END
    FROM accounts a LEFT JOIN workers w ON w.id = a.worker_id WHERE a.state = 'ready' ORDER BY a.id
""")
# Relies on workers_live.
_SHARERS = text(f"""
    SELECT id FROM workers WHERE stopped_at IS NULL AND shares_accounts AND {is_heard("workers")} ORDER BY id
""")


async def shared_out(database: Database, *, silent_seconds: float, locked: bool = False) -> SharedOut:
    """How the accounts are shared out; a worker that was silent for so long is not counted on.

    It says whose turn it is to try; whether an account is to be had is found out by trying. ``locked`` is for
    those who cannot wait for that: an account without its lock has no holder.
    """
    async with database.reading() as connection:
        values = {"silent": silent_seconds, "locked": locked}
        rows = await connection.execute(_SHARED, values)
        accounts = [(Account(*row[:-1]), row[-1]) for row in rows]
        sharers = (await connection.execute(_SHARERS, {"silent": silent_seconds})).scalars()
        return SharedOut(accounts, list(sharers))


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, and the first run that was not over by then."""

    at: datetime
    first_run: int


# Relies on runs_open.
_THIS_MOMENT = text("""
    SELECT fleet_now(), coalesce((SELECT min(id) FROM runs WHERE ended_at IS NULL),
                                 (SELECT max(id) + 1 FROM runs), 0)
""")
_FINISHED = text("""
    SELECT DISTINCT account_id FROM runs
    WHERE id >= :first AND outcome = 'finished' AND ended_at >= :at AND account_id IS NOT NULL
      AND NOT is_errand
""")


async def this_moment(database: Database) -> Moment:
    """Now, for :func:`finished_since`."""
    async with database.reading() as connection:
        return Moment(*(await connection.execute(_THIS_MOMENT)).one())


async def finished_since(database: Database, moment: Moment) -> set[int]:
    """The accounts whose work was brought to its end since then, by any worker."""
    async with database.reading() as connection:
        values = {"first": moment.first_run, "at": moment.at}
        return set((await connection.execute(_FINISHED, values)).scalars())


async def fleet_time(database: Database) -> datetime:
    """What time it is for the whole fleet."""
    async with database.reading() as connection:
        now: datetime = (await connection.execute(text("SELECT fleet_now()"))).scalar_one()
        return now
