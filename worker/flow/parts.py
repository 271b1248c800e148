"""Permission for the parts of a file, without a round trip for each.

Contract. ``BlockCache`` knows the blocks in force from the keeper's regular query, a notification, or the
process's own floods; a part may start if no block stands against it and that knowledge is fresh. With the
database away the knowledge ages, and parts wait until it is fresh again. ``FileParts`` counts the parts of
one file: counts are collected and written with the next flush, and the file becomes one line of the record
when it ends. A Premium wait delays only the part that was refused; ``narrow`` tells the transfer to have
fewer parts under way. A wait beyond ``patience``, of any kind, ends the transfer with ``NotBeforeError``.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, TypeVar

from worker.domain.calls import Activity, FloodKind
from worker.errors import BrokenLineError, NotBeforeError
from worker.flow.backoff import LOST
from worker.flow.flood import recognise
from worker.flow.governor import describe
from worker.flow.waiting import ends_within
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from worker.clock import Clock
    from worker.domain.calls import Call
    from worker.flow.governor import Governor
    from worker.flow.governor_state import GovernorStore

R = TypeVar("R")
log = get_logger(__name__)


class BlockCache:
    """The blocks in force, as far as this process knows."""

    def __init__(self, store: GovernorStore, clock: Clock, *, trusted_for: float = 2.0) -> None:
        self._store = store
        self._clock = clock
        self._trusted_for = trusted_for
        self._known_at = float("-inf")
        self._until: dict[tuple[int, str], float] = {}
        self._changed: asyncio.Future[None] | None = None

    async def refresh(self) -> None:
        """Ask the database which blocks are in force; without an answer, what is known grows old."""
        asked_at = self._clock.monotonic()
        try:
            blocks = await self._store.active_blocks()
        except LOST as error:
            log.warning("governor.blocks.stale", error=repr(error))
            return
        self._until = {
            (block.account, block.method): asked_at + block.seconds_left for block in blocks if not block.chat
        }
        self._known_at = asked_at
        self._announce()

    def block(self, account: int, method: str, seconds: float) -> None:
        """Add a block that this process has just met with, before the database tells of it."""
        key = (account, method)
        self._until[key] = max(self._until.get(key, 0.0), self._clock.monotonic() + seconds)

    def free(self, account: int, method: str) -> bool:
        """Whether a part may start now."""
        now = self._clock.monotonic()
        return now - self._known_at <= self._trusted_for and self._until.get((account, method), now) <= now

    def seconds_left(self, account: int, method: str) -> float:
        """How long the block that is known lasts; 0 without one."""
        now = self._clock.monotonic()
        return max(0.0, self._until.get((account, method), now) - now)

    async def until_free(self, account: int, method: str) -> None:
        """Return as soon as a part may start."""
        while not self.free(account, method):
            now = self._clock.monotonic()
            if self._changed is None or self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
            blocked_for = self._until.get((account, method), now) - now
            await ends_within(self._clock, blocked_for if blocked_for > 0 else None, self._changed)

    def _announce(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


class FileParts:
    """The parts of one file, as the governor sees them; an async context manager around its transfer."""

    def __init__(
        self,
        governor: Governor,
        blocks: BlockCache,
        call: Call,
        clock: Clock,
        *,
        narrow: Callable[[], None],
        patience: float = float("inf"),
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._governor = governor
        self._blocks = blocks
        self._call = call
        self._clock = clock
        self._narrow = narrow
        self._patience = patience
        self._draw = draw
        self._done = 0
        self._started_at = clock.monotonic()

    async def part(self, work: Callable[[], Awaitable[R]]) -> R:
        """Transfer one part: when it is allowed, again after a wait or a lost connection."""
        losses = 0
        backoff = self._governor.limits.backoff
        while True:
            await self.permit()
            try:
                result = await work()
            except LOST as error:
                # Where connection after connection breaks, asking again at once has no point.
                if losses >= backoff.retries or isinstance(error, BrokenLineError):
                    await self.refused(error)
                await self._clock.sleep(backoff.delay(losses, self._draw()))
                losses += 1
            except Exception as error:  # noqa: BLE001  # raised again unless it asks for a wait
                await self.refused(error)
            else:
                self.done()
                return result

    async def permit(self) -> None:
        """Wait until a part may start. With nothing in the way this does not even yield."""
        account, method = self._call.account, self._call.method
        if not self._blocks.free(account, method):
            blocked_for = self._blocks.seconds_left(account, method)
            if blocked_for > self._patience:
                raise NotBeforeError(f"{method} is blocked by a flood wait", seconds=blocked_for)
            await self._blocks.until_free(account, method)

    def done(self) -> None:
        """One part was transferred."""
        self._done += 1
        self._governor.activity.count(self._call.account, self._call.method)

    async def refused(self, error: Exception) -> None:
        """One part was refused: return when it may be tried again, or raise what is no flood."""
        flood = recognise(error)
        if flood is None:
            self._log(ok=False, error=describe(error))
            await self._governor.activity.flush()
            raise error
        verdict = await self._governor.flooded(self._call, flood)
        if flood.kind is FloodKind.PREMIUM:
            self._narrow()
            if verdict.seconds > self._patience:
                raise NotBeforeError(f"{self._call.method} has to wait", seconds=verdict.seconds) from error
            await self._clock.sleep(verdict.seconds)
            return
        self._blocks.block(self._call.account, self._call.method, verdict.seconds)
        await self.permit()

    async def __aenter__(self) -> FileParts:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._done:
            self._log(ok=error is None, error="" if error is None else describe(error), calls=self._done)

    def _log(self, *, ok: bool, error: str = "", calls: int = 1) -> None:
        duration = self._clock.monotonic() - self._started_at
        call = self._call
        self._governor.activity.add(
            Activity(call.account, call.method, ok, duration, error, context=call.context, calls=calls)
        )
