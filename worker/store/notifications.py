"""Hears what other processes announce with NOTIFY, on a connection of its own.

A pooled connection would lose its LISTEN with the next borrower. While the connection is down announcements
are missed, so whoever listens is told after every new connection, too, and looks at the tables instead of
trusting what it heard. Polling remains the fallback of everybody who uses this.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg

from worker.log import get_logger
from worker.store.address import driver_dsn

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.clock import Clock

log = get_logger(__name__)
FLOW = "fleet_flow"
"""Blocks, pauses, resumptions and sets to be tried again are announced here."""
RETRY = "retry"
"""Announced on ``FLOW`` when a person wants something tried at once."""
SHARES = "shares"
"""Announced on ``FLOW`` when a worker wants its share of the accounts, or has yielded some."""

_CONNECT_SECONDS = 5.0
_CHECK_SECONDS = 10.0
_RETRY_SECONDS = 1.0


async def listen(address: str, channel: str, heard: Callable[[str], None], clock: Clock) -> None:
    """Call ``heard`` with every announcement, and with none after every connection, until cancelled."""
    while True:
        try:
            await _listen_once(address, channel, heard, clock)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            log.warning("notifications.lost", channel=channel, error=repr(error))
        await clock.sleep(_RETRY_SECONDS)


async def _listen_once(address: str, channel: str, heard: Callable[[str], None], clock: Clock) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(
        driver_dsn(address),
        timeout=_CONNECT_SECONDS,
        server_settings={"application_name": "archive-fleet listen", "idle_session_timeout": "0"},
        statement_cache_size=0,
    )
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _: lost.set())
    try:
        await connection.add_listener(channel, lambda *told: heard(str(told[-1])))
        heard("")
        while not lost.is_set():
            # A network that went silent ends no connection: only a question without an answer tells.
            await connection.execute("SELECT 1", timeout=_CONNECT_SECONDS)
            await _first(lost.wait(), clock.sleep(_CHECK_SECONDS))
    finally:
        connection.terminate()


async def _first(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        # Not by catching their cancellation, which cannot be told from the caller's own.
        await asyncio.gather(*tasks, return_exceptions=True)
