"""The connections of one account: a main one for calls, and one for files at each data centre."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.session import Auth

from worker.errors import FleetError, RetryableError
from worker.log import get_logger
from worker.telegram.client import FleetClient, Server
from worker.telegram.failures import library_failure
from worker.telegram.session import FleetSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.telegram.storage import MemoryStorage
    from worker.telegram.tether import Tether

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
_TEST_ADDRESSES = {1: "149.154.175.10", 2: "149.154.167.40", 3: "149.154.175.117"}


class Connections:
    """Opens sessions as they are needed and closes them all at the end."""

    def __init__(
        self,
        server: Server,
        storage: MemoryStorage,
        *,
        deadline: float,
        on_update: Callable[[], None],
        tether: Tether,
    ) -> None:
        self._tether = tether
        self._server = server
        self._storage = storage
        self._deadline = deadline
        self._client = FleetClient(server, storage, on_update=on_update, may_send=tether.may_send)
        self._sessions: dict[int, FleetSession] = {}
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

    async def call(self, query: Any, *, visible: bool = False) -> Any:
        """One call on the main connection; a ``visible`` one leaves only while the lease is certain."""
        if self.main is None:
            raise RetryableError("not connected to Telegram")
        return await self.main.call(query, deadline=self._deadline, visible=visible)

    async def call_files(self, dc_id: int, query: Any) -> Any:
        """One call on the file connection to this data centre."""
        session = self._sessions.get(dc_id) or await self._open_files(dc_id)
        return await session.call(query, deadline=self._deadline)

    async def _open_files(self, dc_id: int) -> FleetSession:
        async with self._opening:
            if (existing := self._sessions.get(dc_id)) is not None:
                return existing
            if dc_id == self._storage.main_dc:
                session = await self._start(dc_id, self._storage.main_key, is_media=True)
            else:
                session = await self._start(dc_id, await self._agree_on_key(dc_id), is_media=True)
                try:
                    exported = await self.call(raw.functions.auth.ExportAuthorization(dc_id=dc_id))
                    query = raw.functions.auth.ImportAuthorization(id=exported.id, bytes=exported.bytes)
                    await session.call(query, deadline=self._deadline)
                except BaseException:
                    await session.stop()
                    raise
            self._sessions[dc_id] = session
            return session

    async def _start(self, dc_id: int, key: bytes, *, is_media: bool) -> FleetSession:
        host, port = self._address(dc_id)
        session = FleetSession(
            self._client, dc_id, host, port, key, self._server.test_servers, is_media=is_media
        )
        session.tie(self._tether)
        try:
            async with asyncio.timeout(self._deadline):
                await session.start()
                await session.is_started.wait()
        except TimeoutError:
            await session.stop()
            raise session.broken or RetryableError("Telegram does not answer") from None
        except FleetError:
            raise
        except Exception as error:
            # The library maps refusals at the start of a session to classes of its own.
            await session.stop()
            raise library_failure(error) from error
        return session

    async def _agree_on_key(self, dc_id: int) -> bytes:
        host, port = self._address(dc_id)
        key: bytes = await Auth(self._client, dc_id, host, port, self._server.test_servers).create()
        return key

    def _address(self, dc_id: int) -> tuple[str, int]:
        if self._server.host is not None:
            return self._server.host, self._server.port
        if self._server.test_servers:
            return _TEST_ADDRESSES[dc_id], 80
        return _ADDRESSES[dc_id], 443

    def abort(self) -> None:
        """Cut every connection at once, without a word."""
        for session in [*self._sessions.values(), *([self.main] if self.main else [])]:
            session.abort()

    async def close(self) -> None:
        """Close every connection; returns when all of them are down."""
        sessions = [*self._sessions.values(), *([self.main] if self.main else [])]
        self._sessions.clear()
        self.main = None
        for ended in await asyncio.gather(*(session.stop() for session in sessions), return_exceptions=True):
            if isinstance(ended, Exception):
                log.warning("telegram.close_failed", error=repr(ended))
