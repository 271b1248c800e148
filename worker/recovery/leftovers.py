"""What dead processes leave: claims nobody works on, and files nobody needs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker import faults
from worker.store.sets import live_fences, release_dead_claims
from worker.store.workers import bury_dead_workers

if TYPE_CHECKING:
    from worker.store.database import Database
    from worker.workspace.folder import Workspace


@dataclass(frozen=True, slots=True)
class Swept:
    """What was found and put right."""

    runs_closed: int
    claims_released: int
    folders_removed: int


async def sweep(database: Database, workspace: Workspace, *, silent_seconds: float) -> Swept:
    """Close the runs of dead workers, release their claims, remove the files of sets nobody works on."""
    runs = await bury_dead_workers(database, silent_seconds)
    claims = await release_dead_claims(database)
    # Looked at before the claims are: a folder made in between belongs to a claim that is seen below.
    folders = workspace.leftovers()
    live = await live_fences(database)
    removed = 0
    for leftover in folders:
        if live.get(leftover.set_id) != leftover.fence:
            with faults.around("workspace.sweep"):
                shutil.rmtree(leftover.path, ignore_errors=True)
            removed += 1
    return Swept(runs, claims, removed)
