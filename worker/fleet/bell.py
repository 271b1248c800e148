"""Waking everybody who waits, any number of times."""

from __future__ import annotations

import asyncio
import contextlib


class Ring:
    """The next ring of a bell from when it was asked for: one that comes before the wait counts too."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def within(self, seconds: float) -> bool:
        """Wait for the ring, so many seconds at most; whether it came."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()


class Bell:
    """Rings for all who listen. Ask for the next ring first, then look, then wait: nothing is missed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def next_ring(self) -> Ring:
        return Ring(self._event)
