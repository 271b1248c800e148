"""Latency and bandwidth, so that a loopback connection behaves like a distant one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The round trip in milliseconds and the bandwidths in megabits per second; 0 means unlimited."""

    rtt_ms: float = 0.0
    mbps: float = 0.0
    account_mbps: float = 0.0


class Pipe:
    """A line that carries so many bits per second, one packet after the other."""

    def __init__(self, mbps: float) -> None:
        self._seconds_per_byte = 8 / (mbps * 1e6) if mbps else 0.0
        self._free_at = 0.0

    async def carry(self, size: int) -> None:
        """Return when ``size`` bytes have passed behind everything that came before."""
        if not self._seconds_per_byte:
            return
        loop = asyncio.get_running_loop()
        self._free_at = max(self._free_at, loop.time()) + size * self._seconds_per_byte
        await asyncio.sleep(self._free_at - loop.time())


class Line:
    """One connection's way in and out; accounts share theirs among all their connections."""

    def __init__(self, shape: Shape, shared: Line | None = None) -> None:
        self.latency = shape.rtt_ms / 1000
        self._up, self._down = Pipe(shape.mbps), Pipe(shape.mbps)
        self.shared = shared

    async def upward(self, size: int) -> None:
        """Bytes from the client to the server."""
        await self._up.carry(size)
        if self.shared:
            await self.shared.upward(size)

    async def downward(self, size: int) -> None:
        """Bytes from the server to the client."""
        await self._down.carry(size)
        if self.shared:
            await self.shared.downward(size)
