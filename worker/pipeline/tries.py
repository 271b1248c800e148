"""Tries and claims that trouble of the worker's own has ended: given back, however long the database is away.

A try is counted before its work, or what ends the process would be begun for ever. What ended these was no
fault of what was tried. Where the database itself is away, they are given back before the next one begins.
So are claims whose commit got no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from worker.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Tries:
    """What one process has counted in advance and still has to give back."""

    def __init__(self) -> None:
        self._owed: list[Callable[[], Awaitable[None]]] = []
        self._settling = asyncio.Lock()

    async def give_back(self, write: Callable[[], Awaitable[None]], *, at_once: bool) -> None:
        """Have it written down: at once if that can be, else before the next try begins.

        ``write`` is repeated until it is answered: it gives back this one try, however often it is called.
        """
        self._owed.append(write)
        if at_once:
            with contextlib.suppress(FleetError):
                await self.settle()

    async def settle(self) -> None:
        """Write down all that is owed; raises while the database is away."""
        # Whoever finds nothing owed begins a try: not while one is still being written down.
        async with self._settling:
            while self._owed:
                await self._owed[0]()
                del self._owed[0]
