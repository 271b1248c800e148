"""The governor of one process, and the permission it gives each account."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, TypeVar

from worker.domain.calls import Call
from worker.flow.governor import Governor
from worker.flow.keeper import Keeper
from worker.flow.limits import Limits
from worker.flow.outbox import Paces
from worker.flow.parts import BlockCache, FileParts
from worker.pipeline.deps import Standing
from worker.store.governor_store import GovernorStore
from worker.store.notifications import FLOW, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from worker.clock import Clock
    from worker.config.settings import RateLimitSettings
    from worker.store.database import Database

R = TypeVar("R")
# A longer wait is handed back, and the work rescheduled.
_PATIENCE_SECONDS = 30.0


class Governance:
    """What all calls of this process pass."""

    def __init__(self, governor: Governor, blocks: BlockCache, clock: Clock) -> None:
        self._governor = governor
        self._blocks = blocks
        self._clock = clock

    def permission(
        self, account_id: int, standing: Standing | None = None, *, urgent: bool = False
    ) -> GovernedCalls:
        """For the calls of one account as it stands; ``urgent`` when a person waits for them."""
        standing = standing or Standing(is_premium=False)
        return GovernedCalls(self._governor, self._blocks, self._clock, account_id, standing, urgent=urgent)


class GovernedCalls:
    """Permission as the gateway wants it, from the governor."""

    def __init__(
        self,
        governor: Governor,
        blocks: BlockCache,
        clock: Clock,
        account_id: int,
        standing: Standing,
        *,
        urgent: bool,
    ) -> None:
        self._governor = governor
        self._blocks = blocks
        self._clock = clock
        self._account_id = account_id
        self._standing = standing
        self._urgent = urgent

    async def read(self, method: str, chat: int, work: Callable[[], Awaitable[R]]) -> R:
        call = self._call(method, chat)
        return await self._governor.call(call, work, patience=_PATIENCE_SECONDS, urgent=self._urgent)

    async def write(self, method: str, chat: int, work: Callable[[], Awaitable[R]]) -> R:
        call = self._call(method, chat)
        return await self._governor.attempt(call, work, patience=_PATIENCE_SECONDS, urgent=self._urgent)

    def parts(self, method: str, narrow: Callable[[], None]) -> FileParts:
        call = self._call(method, 0)
        return FileParts(
            self._governor, self._blocks, call, self._clock, narrow=narrow, patience=_PATIENCE_SECONDS
        )

    def _call(self, method: str, chat: int) -> Call:
        return Call(self._account_id, method, chat, premium=self._standing.is_premium)


def chat_paces(settings: RateLimitSettings) -> Paces:
    """How fast the outboxes may write to one chat."""
    if settings.profile == "relaxed":
        return Paces(private=0, group=0)
    return Paces(private=60 / settings.private_chat_per_min, group=60 / settings.group_chat_per_min)


@contextlib.asynccontextmanager
async def open_governance(
    database: Database, settings: RateLimitSettings, clock: Clock
) -> AsyncIterator[Governance]:
    """A governor whose knowledge is kept fresh for the length of the block."""
    store = GovernorStore(database, retention_days=settings.activity_log_retention_days)
    governor = Governor(store, limits=Limits.of(settings), clock=clock)
    blocks = BlockCache(store, clock)
    # Counts are to be written at least once a second; each round costs some milliseconds.
    keeper = Keeper(governor, blocks, clock, interval=0.9)
    chores = [
        asyncio.create_task(keeper.run(), name="governor's keeper"),
        asyncio.create_task(
            listen(database.address, FLOW, lambda _: keeper.notify(), clock), name="hear of blocks"
        ),
    ]
    try:
        yield Governance(governor, blocks, clock)
    finally:
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
