"""Waiting for a task or for time, whichever comes first, on a clock that tests can move."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.clock import Clock


async def ends_within(clock: Clock, seconds: float | None, future: asyncio.Future[Any]) -> bool:
    """Say whether ``future`` ended before ``seconds`` had passed (``None``: as long as it takes).

    The future is only watched: it is neither cancelled nor is its exception raised here.
    """
    if seconds is None:
        await asyncio.wait({future})
        return True
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({future, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
    return future.done()
