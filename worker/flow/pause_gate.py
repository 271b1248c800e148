"""Where work rests while a person has paused it.

Contract. ``passed`` is awaited before every job and every page. It looks at the pauses anew each time, so a
pause takes effect there and then, and it returns as soon as the pause is over: at once after ``notify``,
otherwise by looking again every few seconds. It holds nothing while it waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from worker.domain.pauses import in_the_way
from worker.flow.backoff import LOST
from worker.flow.waiting import ends_within
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.clock import Clock
    from worker.domain.pauses import Pause

log = get_logger(__name__)


class PauseStore(Protocol):
    """Where the pauses are kept."""

    async def pauses(self) -> Sequence[Pause]:
        """The pauses in force."""
        ...


class PauseGate:
    """Lets work through unless it is paused."""

    def __init__(self, store: PauseStore, clock: Clock, *, look_again: float = 5.0) -> None:
        self._store = store
        self._clock = clock
        self._look_again = look_again
        self._changed: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """Something about the pauses has changed: look at once."""
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    async def passed(self, account: int, channel: int | None = None) -> None:
        """Return when this work may go on."""
        resting = False
        while True:
            # Made before looking: what changes while the answer is on its way must not be missed.
            if self._changed is None or self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
            changed = self._changed
            pause = await self._find(account, channel)
            if pause is None:
                return
            if not resting:
                log.info("paused", account=account, channel=channel)
                resting = True
            left = pause.seconds_left
            await ends_within(
                self._clock, self._look_again if left is None else min(left, self._look_again), changed
            )

    async def find(self, account: int, channel: int | None = None) -> Pause | None:
        """The pause in the way of this work now, if any."""
        return in_the_way(await self._store.pauses(), account, channel)

    async def _find(self, account: int, channel: int | None) -> Pause | None:
        while True:
            try:
                return await self.find(account, channel)
            except LOST as error:
                log.warning("pauses.unknown", error=repr(error))
                await self._clock.sleep(self._look_again)
