"""Being known to the fleet as a process that lives: signed on, heard of at regular intervals, signed off."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING

import psutil

from worker import __version__
from worker.log import get_logger
from worker.store import workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from uuid import UUID

    from worker.clock import Clock
    from worker.store.database import Database

log = get_logger(__name__)


@contextlib.asynccontextmanager
async def signed_on(
    database: Database,
    worker_id: UUID,
    clock: Clock,
    *,
    every: float,
    address: str | None,
    say_alive: Callable[[], Awaitable[None]],
) -> AsyncIterator[None]:
    """Be known under this id for the length of the block, and say every so many seconds that it lasts."""
    await workers.register(
        database,
        worker_id,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        address=address,
    )
    beating = asyncio.create_task(_beat(say_alive, clock, every), name="worker heartbeat")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await workers.stopped(database, worker_id)


def own_memory() -> int:
    """How many bytes of memory this process takes."""
    return int(psutil.Process().memory_info().rss)


async def _beat(say_alive: Callable[[], Awaitable[None]], clock: Clock, every: float) -> None:
    while True:
        try:
            await say_alive()
        except Exception:
            # A silent worker is taken for dead: the heartbeat outlives whatever befalls one beat.
            log.exception("worker.heartbeat_failed")
        await clock.sleep(every)
