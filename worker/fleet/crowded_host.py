"""Keeping what the processes of a host know of its crowded address in step, through the database."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from worker.errors import FleetError
from worker.log import get_logger
from worker.store import host_pauses

if TYPE_CHECKING:
    from worker.clock import Clock
    from worker.store.database import Database
    from worker.telegram.crowding import Crowding

log = get_logger(__name__)
_EVERY_SECONDS = 1.0


async def share(database: Database, crowding: Crowding, clock: Clock) -> None:
    """Tell the host's other processes of refusals and hear of theirs, for ever."""
    while True:
        try:
            await share_once(database, crowding, socket.gethostname())
        except FleetError as error:
            # What this process knows itself holds meanwhile.
            log.warning("host.pause_not_shared", reason=str(error))
        await clock.sleep(_EVERY_SECONDS)


async def share_once(database: Database, crowding: Crowding, host: str) -> None:
    """Tell what is known here, and take over what the others know."""
    if crowding.take_news():
        try:
            crowding.hold(await host_pauses.note_refusal(database, host))
        except FleetError:
            # The others still have to be told.
            crowding.refused()
            raise
    else:
        crowding.hold(await host_pauses.pause_left(database, host))
