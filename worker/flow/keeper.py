"""Keeps the governor's knowledge fresh and its record written, in the background of a process.

Contract. Every ``interval`` seconds, and at once after ``notify``, what was collected is written and the
blocks in force are read. Nothing that goes wrong with the database ends ``run``. It ends when it is
cancelled, and writes what is left before it does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker.flow.waiting import ends_within
from worker.log import get_logger

if TYPE_CHECKING:
    from worker.clock import Clock
    from worker.flow.governor import Governor
    from worker.flow.parts import BlockCache

log = get_logger(__name__)


class Keeper:
    """The governor's housekeeping."""

    def __init__(
        self,
        governor: Governor,
        blocks: BlockCache,
        clock: Clock,
        *,
        interval: float = 0.5,
    ) -> None:
        self._governor = governor
        self._blocks = blocks
        self._clock = clock
        self._interval = interval
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Another process has changed something: look at once."""
        self._notified.set()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                await self.run_once()
                await self._rest()
        finally:
            await self._governor.activity.flush()

    async def run_once(self) -> None:
        """Write and read."""
        self._notified.clear()
        try:
            await self._governor.record_floods()
            await self._governor.activity.flush()
            await self._blocks.refresh()
        except Exception:
            # Without the keeper every transfer would come to rest: it outlives whatever befalls one round.
            log.exception("governor.keeper.failed")

    async def _rest(self) -> None:
        notified = asyncio.ensure_future(self._notified.wait())
        try:
            await ends_within(self._clock, self._interval, notified)
        finally:
            notified.cancel()
