"""Owning an account: one process in the whole fleet, for as long as it can prove it.

A lease rests on advisory locks and on time. Each answered heartbeat is trusted for ``lease_secs``, counted
from when it was *sent*. Without the connection that holds the locks the lease is in doubt: nothing visible is
written, while bytes still move. Locks that are regained in time end the doubt as if nothing had been;
otherwise, when the trusted time is over, the connections are cut and the work inside is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from worker.errors import FleetError, LeaseLostError, WorkerTroubleError
from worker.log import get_logger
from worker.store.account_locks import AccountLocks
from worker.store.leases import Tenure, end_tenure
from worker.store.silence import Silence
from worker.telegram.tether import Tether

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType
    from uuid import UUID

    from worker.clock import Clock
    from worker.config.settings import LeaseSettings
    from worker.store.database import Database

log = get_logger(__name__)
# How soon lost locks are asked for again.
_REGAIN_SECONDS = 0.5
# What lies between the answers to two pings, beside the time between the pings.
_LATE_SECONDS = 5.0


class Lease:
    """An async context: when the lease is lost its body is cancelled and ``LeaseLostError`` raised."""

    def __init__(
        self, locks: AccountLocks, clock: Clock, settings: LeaseSettings, tenure: Tenure, *, since: float
    ) -> None:
        self.locks = locks
        self._clock = clock
        self._settings = settings
        self.tenure = tenure
        self._account_id = tenure.account_id
        self._trusted_until = since + settings.lease_secs
        self._lost = ""
        self._is_over = False
        self._may_stand_until = since
        # Ends what must not outlive the lease, before anything is waited for.
        self.on_lost: Callable[[], None] = lambda: None

    @property
    def tether(self) -> Tether:
        """What ties the account's connections to this lease."""
        settings = self._settings
        return Tether(self.require_time, self.require, settings.disconnect_secs, parted=self.parted)

    @property
    def is_trusted(self) -> bool:
        """Whether this process certainly still owns the account, and every lock of its work."""
        return self._is_in_time and not self.locks.in_doubt

    @property
    def _is_in_time(self) -> bool:
        return not self._lost and self._clock.monotonic() < self._trusted_until

    def require_time(self) -> None:
        """Raise when no connection of the account may be used any more."""
        if self._is_over:
            # A connection that was still being made when the others were closed would speak beside the next
            # owner's.
            raise LeaseLostError(f"the work with account {self._account_id} has ended")
        if not self._is_in_time:
            raise LeaseLostError(self._lost or f"the lease of account {self._account_id} has run out")

    def require(self) -> None:
        """Raise unless something visible may be written: ``WorkerTroubleError`` if that may come back."""
        self.require_time()
        if self.locks.in_doubt:
            raise WorkerTroubleError(f"the lease of account {self._account_id} is in doubt")

    def parted(self, silent: float) -> None:
        """A connection of the account was closed, on which nothing had been heard for so long.

        Where the network swallows every packet it swallowed our goodbye too: Telegram keeps such a connection
        until it has heard nothing for ``disconnect_secs``.
        """
        if silent > self._settings.disconnect_secs / 3 + _LATE_SECONDS:
            self._may_stand_until = self._clock.monotonic() + self._settings.disconnect_secs

    @property
    def may_be_connected(self) -> bool:
        """Whether Telegram may still keep a connection that was closed here."""
        return self._clock.monotonic() < self._may_stand_until

    async def confirmed(self) -> None:
        """Wait until something visible may be written."""
        await self.locks.certain()
        self.require_time()

    async def __aenter__(self) -> Lease:
        self._body = asyncio.current_task()
        assert self._body is not None
        self._cancelled_before = self._body.cancelling()
        self._keepers = [
            asyncio.create_task(self._keep(), name=f"lease of account {self._account_id}"),
            asyncio.create_task(self._watch(), name=f"end of the lease of account {self._account_id}"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        if self._lost:
            assert self._body is not None
            # Our own cancellation ends here, whatever the body ended with; one from outside goes on.
            is_ours = self._body.uncancel() <= self._cancelled_before
            if is_ours and kind is asyncio.CancelledError:
                raise LeaseLostError(self._lost) from error

    async def _watch(self) -> None:
        """End the lease on time, whatever a heartbeat is waiting for."""
        while (left := self._trusted_until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
        self._lose("no heartbeat was answered in time")

    async def _keep(self) -> None:
        while not self._lost:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat_secs):
                    await self.locks.lost.wait()
            await self._beat()
            if self.locks.in_doubt:
                await asyncio.sleep(min(_REGAIN_SECONDS, self._settings.heartbeat_secs))

    async def _beat(self) -> None:
        sent, doubtful = self._clock.monotonic(), self.locks.in_doubt
        try:
            owner = await self.locks.renew()
        except FleetError as error:
            log.warning("lease.in_doubt", account=self._account_id, reason=str(error))
            return
        if not owner:
            self._lose("another worker has taken the account over")
        elif self._is_in_time:
            self._trusted_until = sent + self._settings.lease_secs
            if doubtful:
                log.info("lease.regained", account=self._account_id)

    def _lose(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = reason
        log.error("lease.lost", account=self._account_id, reason=reason)
        assert self._body is not None
        self._body.cancel()
        self.locks.give_up(reason)
        self.on_lost()


def tell_the_log(what: str) -> None:
    """Say it in the log: the way for those who have no display of their own."""
    log.info("worker.waits", what=what)


def silence_of(database: Database, clock: Clock, settings: LeaseSettings) -> Silence:
    """What this process will know of how long other owners have been silent."""
    return Silence(database, clock, patience=patience_of(settings), look_every=settings.heartbeat_secs)


def patience_of(settings: LeaseSettings) -> float:
    """A silent owner's last connections go down this long after its last heartbeat at the latest."""
    return settings.lease_secs + settings.disconnect_secs


@contextlib.asynccontextmanager
async def lease_account(
    database: Database,
    clock: Clock,
    settings: LeaseSettings,
    account_id: int,
    worker_id: UUID,
    tell: Callable[[str], None] = tell_the_log,
    silence: Silence | None = None,
) -> AsyncIterator[Lease | None]:
    """Own the account for the length of the block; None if another worker owns it.

    ``tell`` hears in one line of a wait, which is longer than a person would watch without a word. As far as
    the process has seen its owner be silent before, by ``silence``, the wait is over.
    """
    silence = silence or silence_of(database, clock, settings)

    def tell_of_the_wait(seconds: float) -> None:
        tell(
            f"account {account_id}: its last worker ended without a word;"
            f" waiting {seconds} s at most, until its connections are surely closed"
        )

    while (seen := await silence.outwait(account_id, worker_id, tell_of_the_wait)) is not None:
        locks = await AccountLocks.open(database.address, account_id, answer_within=settings.lease_secs / 2)
        try:
            if not await locks.take(seen):
                break
            since = clock.monotonic()
            tenure = await locks.begin(seen, worker_id, patience_of(settings))
            if tenure is None:
                # Somebody came and went between the look and the lock: that one may have to be waited for.
                continue
            lease = Lease(locks, clock, settings, tenure, since=since)
            try:
                async with lease:
                    yield lease
            finally:
                await _end(database, lease, tenure)
            return
        finally:
            await locks.close()
    yield None


async def _end(database: Database, lease: Lease, tenure: Tenure) -> None:
    """Every connection of the account was closed inside the block: say so, if it can be said."""
    if lease.may_be_connected:
        log.warning(
            "lease.end_not_recorded", account=tenure.account_id, reason="Telegram did not hear its end"
        )
    elif lease.is_trusted:
        try:
            await end_tenure(database, tenure)
        except FleetError as error:
            # The next owner waits the lease out instead.
            log.warning("lease.end_not_recorded", account=tenure.account_id, reason=str(error))
