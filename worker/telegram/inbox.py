"""Packets that have arrived: small ones are opened at once, parts wait a moment for each other.

The cipher opens four parts in the time of one. While more of them are on their way, a part is held back for
some milliseconds; that costs the transfer nothing, since many are under way, and saves most of the cipher's
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.telegram.line import PACKET_BYTES

if TYPE_CHECKING:
    from worker.telegram.line import Line

    Packet = tuple[Line, memoryview, bytearray]

# As many as the cipher carries side by side.
TOGETHER = 4
_PART_BYTES = 64 * 1024
_HOLD_SECONDS = 0.1
_KEPT_BUFFERS = 12
# Each lies in a buffer for a part: they are opened before there are many.
_MOST_SMALL = 16


class Inbox:
    """Holds packets until they are worth opening, and the buffers they lie in."""

    def __init__(self) -> None:
        self.buffers: list[bytearray] = []
        self._small: list[Packet] = []
        self._parts: list[Packet] = []
        self._since = 0.0

    def put(self, line: Line, buffer: bytearray, length: int, now: float) -> None:
        packet = (line, memoryview(buffer)[:length], buffer)
        if length < _PART_BYTES:
            self._small.append(packet)
            return
        if not self._parts:
            self._since = now
        self._parts.append(packet)

    @property
    def is_full(self) -> bool:
        return self._fills_cipher or len(self._small) >= _MOST_SMALL

    @property
    def _fills_cipher(self) -> bool:
        return len(self._parts) >= TOGETHER

    def patience(self, now: float) -> float | None:
        """For how long the parts may wait for more; None if there are none."""
        return max(0.0, self._since + _HOLD_SECONDS - now) if self._parts else None

    def due(self, now: float, *, more: bool) -> list[Packet]:
        """What is to be opened now; ``more`` says whether other parts are on their way.

        The parts come first. Behind a small packet they would not all be carried side by side.
        """
        packets: list[Packet] = []
        if self._fills_cipher or (self._parts and not (more and self.patience(now))):
            packets, self._parts = self._parts, packets
        packets += self._small
        self._small = []
        return packets

    def give_back(self, packets: list[Packet]) -> None:
        """These have been dealt with; their buffers may be filled again."""
        for _, _, buffer in packets:
            if len(buffer) == PACKET_BYTES and len(self.buffers) < _KEPT_BUFFERS:
                self.buffers.append(buffer)
