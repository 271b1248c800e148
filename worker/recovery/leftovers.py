"""What dead processes leave: claims nobody works on, and files nobody needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.store.clock_steps import bring_back_waits
from worker.store.disk import dead_reservations, sweep_reservations
from worker.store.sets import dead_claims, release_dead_claims, unfinished_among
from worker.store.workers import bury_dead_workers, dead_among, open_runs_of, silent_workers

if TYPE_CHECKING:
    from uuid import UUID

    from worker.store.database import Database
    from worker.workspace.folder import Workspace


@dataclass(frozen=True, slots=True)
class Swept:
    """What was found and put right."""

    runs_closed: int = 0
    claims_released: int = 0
    folders_removed: int = 0
    reservations_dropped: int = 0


async def sweep(database: Database, workspace: Workspace, me: UUID, *, silent_seconds: float) -> Swept:
    """Close the runs of dead workers, release their claims and space, remove their files on this host."""
    await bring_back_waits(database)
    runs = await bury_dead_workers(database, silent_seconds)
    claims = await release_dead_claims(database, me)
    dead = await dead_among(database, workspace.others())
    # A download that was under way is gone on with by the set's next owner.
    keep = await unfinished_among(database, workspace.sets_of(dead)) if dead else set()
    folders = await workspace.remove_of(dead, keep=keep)
    return Swept(runs, claims, folders, await sweep_reservations(database))


async def look_at_leftovers(database: Database, workspace: Workspace, *, silent_seconds: float) -> Swept:
    """What ``sweep`` would put right, with nothing touched."""
    silent = await silent_workers(database, silent_seconds)
    mine = workspace.others()
    dead = {*await dead_among(database, mine), *(worker for worker in mine if worker in silent)}
    return Swept(
        await open_runs_of(database, silent),
        await dead_claims(database, silent),
        len(dead),
        await dead_reservations(database, silent),
    )
