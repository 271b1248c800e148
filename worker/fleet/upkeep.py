"""Removing what is too old to matter: once a day, by one worker of the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import FleetError
from worker.log import get_logger
from worker.store.governor_store import GovernorStore
from worker.store.requests import forget_old_requests
from worker.store.upkeep import take_turn

if TYPE_CHECKING:
    from worker.domain.calls import Cleaned
    from worker.fleet.process import Process

log = get_logger(__name__)
_SECONDS_BETWEEN_LOOKS = 3600.0
_SECONDS_BETWEEN_TURNS = 86_400.0


async def keep_clean(process: Process) -> None:
    """Clean up whenever it is due and nobody else has, until cancelled."""
    while True:
        try:
            cleaned = await clean_if_due(process)
        except FleetError as error:
            log.warning("upkeep.failed", reason=str(error))
        else:
            if cleaned is not None:
                log.info(
                    "upkeep.cleaned",
                    windows=cleaned.windows,
                    activity=cleaned.activity,
                    blocks=cleaned.blocks,
                )
        await process.clock.sleep(_SECONDS_BETWEEN_LOOKS)


async def clean_if_due(process: Process) -> Cleaned | None:
    """Clean up if the last time was a day ago; None if it was not, or another worker is at it."""
    if not await take_turn(process.database, every_seconds=_SECONDS_BETWEEN_TURNS):
        return None
    await forget_old_requests(process.database)
    days = process.settings.rate_limits.activity_log_retention_days
    return await GovernorStore(process.database, retention_days=days).cleanup()
