"""The connections of one account: a main one for calls, and several for files at each data centre."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyrogram import raw

from worker import faults
from worker.errors import (
    AccountBannedError,
    AccountFrozenError,
    AccountUnusableError,
    FleetError,
    LeaseLostError,
    OutcomeUnknownError,
    RefusedError,
    RetryableError,
)
from worker.log import get_logger
from worker.telegram.client import FleetClient, Server
from worker.telegram.depth import Depth
from worker.telegram.envelope import Key
from worker.telegram.failures import library_failure
from worker.telegram.key_exchange import agree_on_key
from worker.telegram.porter import Porter
from worker.telegram.route import Route
from worker.telegram.session import FleetSession
from worker.telegram.streak import Streak

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.telegram.doubts import KeyDoubts
    from worker.telegram.part_calls import PartCall
    from worker.telegram.storage import MemoryStorage
    from worker.telegram.tether import Tether

    Direction = Literal["up", "down"]

log = get_logger(__name__)
FIRST_DC = 2
# Where each data centre is first looked for; a configured server stands for all of them.
_ADDRESSES = {
    1: "149.154.175.53",
    2: "149.154.167.51",
    3: "149.154.175.100",
    4: "149.154.167.91",
    5: "91.108.56.130",
}
# Connections that keep breaking for so many deadlines of a call are trouble that a person hears of.
_DEADLINES_OF_TROUBLE = 4
_TEST_ADDRESSES = {1: "149.154.175.10", 2: "149.154.167.40", 3: "149.154.175.117"}


@dataclass(frozen=True, slots=True)
class TransferBounds:
    """The most that one account has under way to one data centre."""

    parts: int = 32
    lines: int = 8


class Connections:
    """Opens connections as they are needed and closes them all at the end."""

    def __init__(
        self,
        server: Server,
        storage: MemoryStorage,
        *,
        deadline: float,
        on_update: Callable[[], None],
        tether: Tether,
        bounds: TransferBounds,
        doubts: KeyDoubts,
    ) -> None:
        self._tether = tether
        self._doubts = doubts
        self._server = server
        self._storage = storage
        self._deadline = deadline
        self._client = FleetClient(server, storage, on_update=on_update, tether=tether)
        self._routes: dict[int, Route] = {}
        self._depths: dict[tuple[int, Direction], Depth] = {}
        self._bounds = bounds
        self._porter = Porter(deadline=deadline)
        self._opening = asyncio.Lock()
        self.main: FleetSession | None = None

    async def open(self) -> None:
        """Agree on a key if there is none yet, and connect."""
        await self._storage.api_id(self._server.api_id)
        await self._storage.test_mode(self._server.test_servers)
        try:
            if await self._storage.auth_key() is None:
                await self._storage.dc_id(FIRST_DC)
                await self._storage.auth_key(await self._agree_on_key(FIRST_DC))
            self.main = await self._start(self._storage.main_dc, self._storage.main_key, is_media=False)
        except (OSError, TimeoutError) as error:
            raise RetryableError(f"Telegram is not reachable: {error}") from error

    async def move_home(self, dc_id: int) -> None:
        """Agree on a key with the data centre that the account belongs to, and connect there instead."""
        main, self.main = self.main, None
        if main is not None:
            await main.stop()
        try:
            key = await self._agree_on_key(dc_id)
            await self._storage.dc_id(dc_id)
            await self._storage.auth_key(key)
            self.main = await self._start(dc_id, key, is_media=False)
        except (OSError, TimeoutError) as error:
            raise RetryableError(f"Telegram is not reachable: {error}") from error

    async def call(self, query: Any, *, visible: bool = False) -> Any:
        """One call on the main connection; a ``visible`` one leaves only while the lease is certain."""
        if self.main is None:
            raise RetryableError("not connected to Telegram")
        return await self.main.call(query, deadline=self._deadline, visible=visible)

    def depth(self, dc_id: int, direction: Direction) -> Depth:
        """What is known about how much may be under way to or from this data centre."""
        key = (dc_id, direction)
        if key not in self._depths:
            self._depths[key] = Depth(self._bounds.parts, self._bounds.lines)
        return self._depths[key]

    async def call_files(self, dc_id: int, call: PartCall) -> Any:
        """One call on any file connection to this data centre."""
        route = self._routes.get(dc_id) or await self._open_route(dc_id)
        depths = [depth for (dc, _), depth in self._depths.items() if dc == dc_id]
        busy = sum(depth.lines for depth in depths if depth.is_busy)
        route.wanted = min(self._bounds.lines, max(busy, *(depth.lines for depth in depths), 1))
        # Twice the parts, since the hashes of ranges are asked for beside the ranges.
        route.per_line = 2 * max((depth.per_line for depth in depths), default=1)
        with faults.around(f"telegram.{call.method}"):
            try:
                return await self._porter.carry(route, call)
            except AccountUnusableError as error:
                # The account is judged at home alone: another data centre may merely have forgotten its key.
                if dc_id == self._storage.main_dc or isinstance(
                    error, AccountBannedError | AccountFrozenError
                ):
                    raise
                await self._give_up_route(dc_id, route)
                return await self._porter.carry(await self._open_route(dc_id), call)

    async def _give_up_route(self, dc_id: int, route: Route) -> None:
        """Forget the key of this route, once: every part that was under way on it comes by here."""
        async with self._opening:
            if self._routes.get(dc_id) is route:
                del self._routes[dc_id]
                await self._storage.other_keys.forget(dc_id)

    async def _open_route(self, dc_id: int) -> Route:
        async with self._opening:
            if (existing := self._routes.get(dc_id)) is not None:
                return existing
            if self.main is None:
                raise RetryableError("not connected to Telegram")
            if dc_id == self._storage.main_dc:
                key, salt = self._storage.main_key, self.main.salt
            else:
                key, salt = await self._key_at(dc_id)
            route = Route(
                dc_id=dc_id,
                address=self._address(dc_id),
                bind_address=self._server.bind_address,
                proxy=self._client.proxy,
                key=Key(key),
                greeting=await self._client.greeting(),
                tether=self._tether,
                doubts=self._doubts,
                streak=self._streak(),
                salt=salt,
                clock_offset=self._client.server_time - time.time(),
            )
            self._porter.add(route)
            self._routes[dc_id] = route
            return route

    async def _key_at(self, dc_id: int) -> tuple[bytes, int]:
        """The key that speaks for this account at another data centre, and the salt to begin with."""
        known = self._storage.other_keys.known.get(dc_id)
        if known is not None:
            # The first answer corrects the salt.
            return known, 0
        key = await self._agree_on_key(dc_id)
        try:
            salt = await self._authorise(dc_id, key)
        except OutcomeUnknownError as error:
            # What was exported serves once: whoever asks again begins with another key.
            raise RetryableError(error.what) from error
        await self._storage.other_keys.keep(dc_id, key)
        return key, salt

    async def _authorise(self, dc_id: int, key: bytes) -> int:
        """Let this account's key at another data centre speak for the account; returns the salt to use."""
        session = await self._start(dc_id, key, is_media=True)
        try:
            exported = await self.call(raw.functions.auth.ExportAuthorization(dc_id=dc_id))
            query = raw.functions.auth.ImportAuthorization(id=exported.id, bytes=exported.bytes)
            await session.call(query, deadline=self._deadline)
            return int(session.salt)
        finally:
            await session.stop()

    async def _start(self, dc_id: int, key: bytes, *, is_media: bool) -> FleetSession:
        host, port = self._address(dc_id)
        streak = self._streak()
        session = FleetSession(
            self._client,
            dc_id,
            host,
            port,
            key,
            self._server.test_servers,
            is_media=is_media,
            doubts=self._doubts,
            streak=streak,
        )
        session.tie(self._tether)
        try:
            async with asyncio.timeout(self._deadline):
                await session.start()
                await session.is_started.wait()
        except TimeoutError:
            await session.stop()
            what = (
                f"Telegram does not answer: {streak.reason}" if streak.count else "Telegram does not answer"
            )
            if (pause := self._tether.wait_to_dial()) > 0:
                what = f"Telegram takes no further connection from this host for {pause:.0f} s"
            raise session.broken or RetryableError(what) from None
        except FleetError:
            session.abort()
            raise
        except asyncio.CancelledError:
            # Nobody may be left with an open session of an account that is about to be given up.
            session.abort()
            raise
        except Exception as error:
            # The library maps refusals at the start of a session to classes of its own.
            await session.stop()
            raise library_failure(error) from error
        return session

    async def _agree_on_key(self, dc_id: int) -> bytes:
        test_servers = self._server.test_servers
        return await agree_on_key(
            self._client, dc_id, self._address(dc_id), test_servers, deadline=self._deadline
        )

    def _streak(self) -> Streak:
        return Streak(_DEADLINES_OF_TROUBLE * self._deadline)

    def _address(self, dc_id: int) -> tuple[str, int]:
        if self._server.host is not None:
            return self._server.host, self._server.port
        addresses, port = (_TEST_ADDRESSES, 80) if self._server.test_servers else (_ADDRESSES, 443)
        if dc_id not in addresses:
            raise RefusedError(f"Telegram names data centre {dc_id}, of which no address is known here")
        return addresses[dc_id], port

    def abort(self) -> None:
        """Cut every connection at once, without a word."""
        self._porter.abort(LeaseLostError("the account's connections were cut"))
        if self.main is not None:
            self.main.abort()

    async def close(self) -> None:
        """Close every connection; returns when all of them are down."""
        main, self.main = self.main, None
        try:
            await self._porter.close()
            if main is not None:
                await main.stop()
        except Exception as error:  # noqa: BLE001 - what is closed need not be closed well
            log.warning("telegram.close_failed", error=repr(error))
        finally:
            # Cancelled on the way, it must be down all the same: the account is about to be given up.
            if main is not None:
                main.abort()
