"""An account's lock and the content locks of its work, on whichever connection holds them at present.

A connection that is lost takes its locks along. They are held again when a fresh connection was granted every
one of them and the account's row still names this owner; until then whoever asks for a lock waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Any, TypeVar

from worker.errors import LeaseLostError, WorkerTroubleError
from worker.log import get_logger
from worker.store.leases import BEGIN, END_SILENT_OWNER, RENEW, Tenure
from worker.store.locks import LockSession

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from uuid import UUID

    from worker.store.leases import Seen

log = get_logger(__name__)
K = TypeVar("K", int, bytes)


class AccountLocks:
    """The locks of one account's work, through the loss of connections, until they are given up."""

    def __init__(self, address: str, session: LockSession, account_id: int, *, answer_within: float) -> None:
        self._address = address
        self._account_id = account_id
        self._answer_within = answer_within
        self._session = session
        self._contents: set[bytes] = set()
        self._guests: set[int] = set()
        self._undoing: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        self._given_up = ""
        self._tenure: Tenure | None = None

    @classmethod
    async def open(cls, address: str, account_id: int, *, answer_within: float) -> AccountLocks:
        """Connect, holding nothing yet. ``answer_within`` bounds every statement."""
        session = await LockSession.open(address, answer_within=answer_within)
        return cls(address, session, account_id, answer_within=answer_within)

    async def take(self, seen: Seen) -> bool:
        """Hold the account's lock, or learn at once that somebody else does.

        ``seen`` is an owner that has been silent for long enough: a session that it has left behind is ended.
        """
        if await self._session.try_account(self._account_id):
            return True
        marks = seen.marks.items()
        await self._session.end_holder(
            END_SILENT_OWNER,
            self._account_id,
            [number for number, _ in marks],
            [mark.epoch for _, mark in marks],
            [mark.until for _, mark in marks],
            seen.mark.server,
        )
        return await self._session.try_account(self._account_id)

    async def begin(self, seen: Seen, worker_id: UUID, seconds: float) -> Tenure | None:
        """Become the owner after the one that was seen; None if the account has had another one since."""
        mark = seen.mark
        last = (mark.worker_id, mark.epoch, mark.until, mark.server)
        epoch = await self._session.begin(BEGIN, self._account_id, worker_id, seconds, *last)
        if epoch is None:
            return None
        self._tenure = Tenure(self._account_id, worker_id, epoch, seconds)
        return self._tenure

    @property
    def lost(self) -> asyncio.Event:
        """Set when the connection that holds the locks at present is gone."""
        return self._session.lost

    @property
    def in_doubt(self) -> bool:
        """Whether another process may have got one of these locks."""
        return bool(self._given_up) or self._session.lost.is_set()

    async def certain(self) -> LockSession:
        """Wait until every lock is held; ``LeaseLostError`` once that will not be so again."""
        while not self._given_up:
            settled = self._settled
            if not self._session.lost.is_set():
                return self._session
            await settled.wait()
        raise LeaseLostError(self._given_up)

    async def try_content(self, content_hash: bytes) -> bool:
        """Become the only one that may publish this content, or learn at once that another one may."""
        return await self._try(
            content_hash, self._contents, LockSession.try_content, LockSession.release_content
        )

    async def try_account(self, account_id: int) -> bool:
        """Hold another account too, as whoever finishes its work must, or learn at once that it is run."""
        return await self._try(account_id, self._guests, LockSession.try_account, LockSession.release_account)

    async def _try(
        self,
        key: K,
        held: set[K],
        ask: Callable[[LockSession, K], Coroutine[Any, Any, bool]],
        release: Callable[[LockSession, K], Awaitable[None]],
    ) -> bool:
        # Advisory locks are re-entrant within a session: asking twice would succeed twice.
        while key not in held:
            session = await self.certain()
            asking = asyncio.create_task(ask(session, key))
            try:
                granted = await asyncio.shield(asking)
            except LeaseLostError:
                continue
            except asyncio.CancelledError:
                # It may be granted all the same, and nobody would know of it.
                undoing = asyncio.create_task(_undo(asking, functools.partial(release, session, key)))
                self._undoing.add(undoing)
                undoing.add_done_callback(self._undoing.discard)
                raise
            if session is not self._session or session.lost.is_set():
                # Granted by a connection that is gone by the time its answer is heard.
                continue
            if granted:
                held.add(key)
            return granted
        return False

    async def release_content(self, content_hash: bytes) -> None:
        """Let others publish it; called once for each lock that was granted."""
        self._contents.remove(content_hash)
        await self._release(content_hash, LockSession.release_content)

    async def release_account(self, account_id: int) -> None:
        """Let others run that account; called once for each lock that was granted."""
        self._guests.remove(account_id)
        await self._release(account_id, LockSession.release_account)

    async def _release(self, key: K, release: Callable[[LockSession, K], Awaitable[None]]) -> None:
        if not self.in_doubt:
            try:
                # A lock that is on its way back goes back, whatever becomes of who gave it.
                await asyncio.shield(release(self._session, key))
            except LeaseLostError as error:
                log.info("lock.gone_with_its_connection", reason=str(error))

    async def renew(self) -> bool:
        """A heartbeat, on a fresh connection if need be; False if another worker owns the account by now.

        ``WorkerTroubleError`` means that nothing can be said yet.
        """
        try:
            if not self._session.lost.is_set():
                return await self._beat(self._session)
            return await self._regain()
        except LeaseLostError as error:
            raise WorkerTroubleError(str(error)) from error

    async def _beat(self, session: LockSession) -> bool:
        tenure = self._tenure
        assert tenure is not None, "nobody renews what was not begun"
        answer = await session.heartbeat(
            RENEW, tenure.account_id, tenure.worker_id, tenure.epoch, tenure.seconds
        )
        return bool(answer)

    async def _regain(self) -> bool:
        session = await LockSession.open(self._address, answer_within=self._answer_within)
        contents, guests = set(self._contents), set(self._guests)
        try:
            await session.end_session(self._session.name)
            await _hold_again(session, {self._account_id} | guests, contents)
            owner = await self._beat(session)
        except BaseException:
            await session.close()
            raise
        if not owner:
            await session.close()
            return False
        lost, self._session = self._session, session
        # Let go of by somebody who had no connection to say it on. Whoever lets go from here on has one.
        idle_contents, idle_guests = contents - self._contents, guests - self._guests
        self._settle()
        await lost.close()
        for content_hash in idle_contents:
            await session.release_content(content_hash)
        for account_id in idle_guests:
            await session.release_account(account_id)
        return True

    def give_up(self, reason: str) -> None:
        """Nothing is held from here on, whatever the connection says; whoever waits is told so."""
        self._given_up = reason
        self._settle()

    def _settle(self) -> None:
        settled, self._settled = self._settled, asyncio.Event()
        settled.set()

    async def close(self) -> None:
        """Give everything back."""
        await self._session.close()


async def _hold_again(session: LockSession, account_ids: set[int], contents: set[bytes]) -> None:
    for account_id in account_ids:
        if not await session.try_account(account_id):
            raise WorkerTroubleError("another session holds an account's lock")
    for content_hash in contents:
        if not await session.try_content(content_hash):
            raise WorkerTroubleError("another session holds the lock of a content")


async def _undo(asking: asyncio.Task[bool], release: Callable[[], Awaitable[None]]) -> None:
    """Give back what is granted to somebody who no longer waits for it."""
    with contextlib.suppress(LeaseLostError):
        if await asking:
            await release()
