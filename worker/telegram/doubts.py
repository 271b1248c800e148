"""When a server that claims not to know a key is believed.

The claim is four bytes in the clear, the transport error -404: anybody on the way can make it. What follows
from it is grave, since an account would have to log in again. So it is a claim that is heard, over minutes
and on several connections, without one answer under the key in between, before it is believed. An answer
under the key proves the opposite at once.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import AccountUnusableError, FleetError
from worker.telegram.failures import KeyDeniedError

if TYPE_CHECKING:
    from collections.abc import Callable

CLAIMS, SECONDS = 5, 120.0
# Connections that are refused together say it once.
_APART_SECONDS = 10.0


@dataclass(slots=True)
class _Claims:
    first_at: float
    last_at: float
    count: int = 1


class KeyDoubts:
    """What was claimed of the keys of one process. The event loop and the threads of file parts ask it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._claims: dict[bytes, _Claims] = {}
        self._lock = threading.Lock()

    def denied(self, key_id: bytes) -> FleetError:
        """A fresh connection was told that this key is unknown: what that means by now."""
        with self._lock:
            if self._is_believed(key_id):
                return AccountUnusableError(
                    "Telegram does not know this session",
                    remedy="log the account in again: worker accounts login",
                )
        return KeyDeniedError(
            "it was refused with -404, as if Telegram did not know this session",
            remedy="anybody on the way can say so: it is believed after some minutes; until then look at"
            " network and proxy, or log the account in again: worker accounts login",
        )

    def _is_believed(self, key_id: bytes) -> bool:
        now = self._now()
        claims = self._claims.get(key_id)
        if claims is None:
            self._claims[key_id] = _Claims(now, now)
            return False
        if now - claims.last_at >= _APART_SECONDS:
            claims.count += 1
            claims.last_at = now
        return claims.count >= CLAIMS and now - claims.first_at >= SECONDS

    def proven(self, key_id: bytes) -> None:
        """The server has answered under this key."""
        if key_id in self._claims:
            with self._lock:
                self._claims.pop(key_id, None)
