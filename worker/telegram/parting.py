"""Whether Telegram hears of the end of a connection: known from when something was last heard on it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.telegram.tether import Tether


class LastHeard:
    """When a connection was last heard from; of one connection after the other. From any thread."""

    def __init__(self) -> None:
        self._at: float | None = None

    def begin(self) -> None:
        """A connection was opened."""
        self._at = time.monotonic()

    def heard(self) -> None:
        """Something came on it."""
        if self._at is not None:
            self._at = time.monotonic()

    def is_dead(self) -> None:
        """Whatever came on it before, nothing does any more."""
        if self._at is not None:
            self._at = -math.inf

    def end(self, tether: Tether) -> None:
        """It is about to be closed, if one is open: tell whoever may have to wait for its end."""
        at, self._at = self._at, None
        if at is not None:
            tether.parted(time.monotonic() - at)


def was_closed_there(protocol: Any) -> bool:
    """Whether it was the other end that closed this connection of the library's, not a wait that ended."""
    reader = protocol.reader if protocol is not None else None
    return reader is None or reader.at_eof() or isinstance(reader.exception(), ConnectionResetError)
