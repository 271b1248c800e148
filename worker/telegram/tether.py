"""What ties an account's connections to the lease they live under."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Callable


def _nothing() -> None:
    """Nobody holds these connections back."""


def _unheard(_: float) -> None:
    """Nobody waits until these connections are gone."""


def _no_time() -> float:
    """Another connection may be opened at any time."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Tether:
    """Both questions are asked synchronously, right before bytes leave, and raise when they may not.

    ``disconnect_after`` is how many seconds Telegram keeps a connection on which it hears nothing: a process
    that was stopped cannot close its own. ``wait_to_dial`` says for how many seconds no other connection may
    be opened, and ``crowded`` is told when the server has had enough of them; both from any thread. So is
    ``parted``, of each connection that is closed: for how many seconds nothing had been heard on it.
    """

    may_send: Callable[[], None] = _nothing
    may_write: Callable[[], None] = _nothing
    disconnect_after: int = 25
    wait_to_dial: Callable[[], float] = _no_time
    crowded: Callable[[], None] = _nothing
    parted: Callable[[float], None] = _unheard


LOOSE = Tether()


class TetheredSocket(socket.socket):
    """A socket that asks before it sends.

    The event loop keeps what a socket would not take and sends it later, perhaps after the process has slept:
    only here is the question asked at the very moment the bytes leave.
    """

    may_send: Callable[[], None] = staticmethod(_nothing)

    def send(self, data: Any, flags: int = 0, /) -> int:
        self._ask()
        return super().send(data, flags)

    def sendmsg(self, *arguments: Any) -> int:
        self._ask()
        return super().sendmsg(*arguments)

    def _ask(self) -> None:
        try:
            self.may_send()
        except FleetError as error:
            # As an error of the line, which makes the event loop close the connection.
            raise ConnectionAbortedError(str(error)) from error
