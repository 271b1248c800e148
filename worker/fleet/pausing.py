"""Going on at once when a person ends a pause or wants a set tried again, or when workers share anew.

Without the announcement, the next round finds out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker.errors import FleetError
from worker.log import get_logger
from worker.store.notifications import FLOW, RETRY, SHARES, listen

if TYPE_CHECKING:
    from worker.fleet.process import Process

log = get_logger(__name__)


async def wake_when_told(process: Process) -> None:
    """Wake the accounts when a set is to be tried again or a pause is over, until cancelled.

    The shift is woken when another worker wants accounts or yields some.
    """
    told = asyncio.Event()

    def heard(what: str) -> None:
        if what == RETRY:
            process.wake.ring()
        elif what == SHARES:
            process.company.ring()
        else:
            told.set()

    listening = asyncio.create_task(listen(process.database.address, FLOW, heard, process.clock))
    before: set[tuple[int | None, int | None]] = set()
    try:
        while True:
            await told.wait()
            told.clear()
            try:
                pauses = {(pause.account, pause.channel) for pause in await process.pauses.pauses()}
            except FleetError as error:
                log.warning("pauses.unknown", reason=str(error))
                continue
            # Blocks are announced on the same channel: those must not set every account scanning.
            if before - pauses:
                process.wake.ring()
            before = pauses
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
