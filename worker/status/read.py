"""How the fleet stands, asked of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.status.compose import compose
from worker.status.facts import read_facts

if TYPE_CHECKING:
    from worker.status.model import FleetStatus
    from worker.store.database import Database


async def read_status(database: Database, *, silent_after: float) -> FleetStatus:
    """Everything at this moment."""
    return compose(await read_facts(database), silent_after=silent_after)
