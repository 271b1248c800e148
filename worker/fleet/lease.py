"""Owning an account: one process in the whole fleet, for as long as it can prove it.

The lease rests on an advisory lock. Its connection's loss ends the work inside the lease at once; silence
ends it when the trusted time is over, which is counted from when the last answered heartbeat was *sent*.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from worker.errors import LeaseLostError
from worker.log import get_logger
from worker.store.accounts import end_lease, extend_lease, take_lease
from worker.store.locks import LockSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType
    from uuid import UUID

    from worker.clock import Clock
    from worker.config.settings import LeaseSettings
    from worker.store.database import Database

log = get_logger(__name__)


class Lease:
    """An async context: when the lease is lost its body is cancelled and ``LeaseLostError`` raised."""

    def __init__(
        self,
        database: Database,
        locks: LockSession,
        clock: Clock,
        settings: LeaseSettings,
        account_id: int,
        worker_id: UUID,
    ) -> None:
        self.locks = locks
        self._database = database
        self._clock = clock
        self._settings = settings
        self._account_id = account_id
        self._worker_id = worker_id
        self._trusted_until = clock.monotonic() + settings.lease_secs
        self._lost = ""
        # Ends what must not outlive the lease, before anything is waited for.
        self.on_lost: Callable[[], None] = lambda: None

    @property
    def is_trusted(self) -> bool:
        """Whether this process certainly still owns the account."""
        return not (self._lost or self.locks.lost.is_set() or self._clock.monotonic() >= self._trusted_until)

    def require(self) -> None:
        """Raise unless this process certainly still owns the account."""
        if not self.is_trusted:
            raise LeaseLostError(f"the lease of account {self._account_id} is in doubt")

    async def __aenter__(self) -> Lease:
        self._body = asyncio.current_task()
        assert self._body is not None
        self._cancelled_before = self._body.cancelling()
        self._keeper = asyncio.create_task(self._keep(), name=f"lease of account {self._account_id}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeper
        if self._lost and kind is asyncio.CancelledError:
            assert self._body is not None
            # Our own cancellation ends here; one from outside goes on.
            if self._body.uncancel() <= self._cancelled_before:
                raise LeaseLostError(self._lost) from error

    async def _keep(self) -> None:
        while not self._lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat_secs):
                    await self.locks.lost.wait()
            await self._beat()
        log.error("lease.lost", account=self._account_id, reason=self._lost)
        self.on_lost()
        assert self._body is not None
        self._body.cancel()

    async def _beat(self) -> None:
        sent = self._clock.monotonic()
        try:
            await self.locks.heartbeat()
            owner = await extend_lease(
                self._database, self._account_id, self._worker_id, self._settings.lease_secs
            )
        except LeaseLostError as error:
            self._lost = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, without a heartbeat trust runs out
            if self._clock.monotonic() >= self._trusted_until:
                self._lost = str(error) or repr(error)
        else:
            if owner:
                self._trusted_until = sent + self._settings.lease_secs
            else:
                self._lost = "another worker has taken the account over"


@contextlib.asynccontextmanager
async def lease_account(
    database: Database, clock: Clock, settings: LeaseSettings, account_id: int, worker_id: UUID
) -> AsyncIterator[Lease | None]:
    """Own the account for the length of the block; None if another worker owns it."""
    locks = await LockSession.open(database.address, answer_within=settings.lease_secs / 2)
    try:
        if not await locks.try_account(account_id):
            yield None
            return
        remaining = await take_lease(database, account_id, worker_id, settings.lease_secs)
        lease = Lease(database, locks, clock, settings, account_id, worker_id)
        try:
            async with lease:
                if remaining:
                    # The last owner ended without a word: its connections may still be open that long.
                    log.info("lease.waits_for_predecessor", account=account_id, seconds=round(remaining, 1))
                    await clock.sleep(remaining)
                yield lease
        finally:
            # Every connection of the account was closed inside the block.
            if lease.is_trusted:
                await end_lease(database, account_id, worker_id)
    finally:
        await locks.close()
