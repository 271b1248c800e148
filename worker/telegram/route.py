"""Requests for file parts, and the way to the data centre that they are carried on."""

from __future__ import annotations

import itertools
import socket
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker.errors import BrokenLineError, FleetError
from worker.telegram.failures import in_words
from worker.telegram.line import Line, LineLostError
from worker.telegram.proxied import dial_through
from worker.telegram.streak import LOOK_AT_THE_WAY, TOO_MANY_CONNECTIONS

if TYPE_CHECKING:
    import asyncio

    from worker.telegram.doubts import KeyDoubts
    from worker.telegram.envelope import Key
    from worker.telegram.part_calls import PartCall
    from worker.telegram.streak import Streak
    from worker.telegram.tether import Tether

_KEY_UNKNOWN = -404


@dataclass(slots=True, eq=False)
class Request:
    """A call on its way, and who waits for it."""

    call: PartCall
    answer: asyncio.Future[Any]
    asked_at: float
    corrections: int = 0

    @property
    def is_cancelled(self) -> bool:
        return self.answer.cancelled()

    @property
    def is_upload(self) -> bool:
        return self.call.is_upload


@dataclass(slots=True, eq=False)
class Route:
    """The way to one data centre: where it is, by which key, over how many lines."""

    dc_id: int
    address: tuple[str, int]
    bind_address: str | None
    proxy: Any
    key: Key
    # What stands before the first queries of a session: invokeWithLayer and initConnection.
    greeting: bytes
    tether: Tether
    doubts: KeyDoubts
    streak: Streak
    salt: int = 0
    clock_offset: float = 0.0
    wanted: int = 1
    most: int = 16
    per_line: int = 4
    pending: deque[Request] = field(default_factory=deque)
    lines: list[Line] = field(default_factory=list)
    open_at: float = 0.0

    @property
    def outstanding(self) -> int:
        return len(self.pending) + sum(len(line.under_way) for line in self.lines)

    @property
    def is_mixed(self) -> bool:
        """Whether parts go both ways at present."""
        # A copy in one step: the event loop adds to what is pending meanwhile.
        requests = itertools.chain(list(self.pending), *(line.under_way.values() for line in self.lines))
        return len({request.is_upload for request in requests}) > 1

    def idle_lines(self) -> list[tuple[Line, bool | None]]:
        """The lines that may be given something, those with the least under way first, and what each is for.

        While parts go both ways, every other line carries uploads and the rest everything else: a request for
        a range that stands behind whole parts on its way up would come too late to keep the way down busy.
        """
        connected = [line for line in self.lines if line.is_connected]
        apart = len(connected) > 1 and self.is_mixed
        idle = [
            (line, place % 2 == 1 if apart else None) for place, line in enumerate(connected) if line.is_idle
        ]
        return sorted(idle, key=lambda one: len(one[0].under_way))

    def take_back(self, method: str | None = None) -> list[Request]:
        """The requests that have not left, of this method if one is named; they will not."""
        taken = [request for request in list(self.pending) if method in (None, request.call.method)]
        for request in taken:
            self.pending.remove(request)
        return taken

    def next(self, *, upload: bool | None = None) -> Request | None:
        """The next request that somebody still waits for; one that uploads, or none such, if that matters."""
        for request in list(self.pending):
            if request.is_cancelled:
                self.pending.remove(request)
            elif upload is None or request.is_upload is upload:
                self.pending.remove(request)
                return request
        return None

    def may_open(self, now: float) -> bool:
        """Whether another line may be opened; those that there are go on in any case."""
        return now >= self.open_at and self.tether.wait_to_dial() <= 0

    def dial(self, now: float) -> Line:
        """Begin to open one more line. The lease is asked first, as before every write."""
        self.tether.may_send()
        if self.proxy is not None:
            connection = dial_through(self.proxy, self.address, self.dc_id, self.tether.may_send)
            connection.setblocking(False)
            return self._line_on(connection, now)
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.bind_address:
                connection.bind((self.bind_address, 0))
            connection.connect_ex(self.address)
        except OSError:
            connection.close()
            raise
        return self._line_on(connection, now)

    def _line_on(self, connection: socket.socket, now: float) -> Line:
        line = Line(self, connection, now)
        self.lines.append(line)
        return line

    def pause(self, now: float, reason: str) -> float:
        """A line was lost, or could not be opened: wait before the next, longer each time.

        Lines that are lost together are lost once.
        """
        if now >= self.open_at:
            self.streak.lost(reason)
        self.open_at = max(self.open_at, now + self.streak.pause)
        return self.open_at - now

    def loss(self, error: Exception) -> Exception:
        """What to tell those who wait for an answer on a line that is lost."""
        if isinstance(error, FleetError) and not isinstance(error, LineLostError):
            return error
        kind = type(error) if isinstance(error, LineLostError) else LineLostError
        return kind(f"the connection for files to data centre {self.dc_id} broke: {in_words(error)}")

    @property
    def trouble(self) -> BrokenLineError | None:
        """What to tell those who wait, if asking again at once has no point."""
        if (trouble := self.streak.trouble) is None:
            return None
        what = f"the connection for files to data centre {self.dc_id} {trouble}"
        return BrokenLineError(what, remedy=LOOK_AT_THE_WAY)

    def proven(self) -> None:
        """A packet came that only the server can have made."""
        self.doubts.proven(self.key.key_id)

    def refused(self, code: int) -> Exception:
        """What a transport error means: a packet of four bytes in the clear, in the place of an answer."""
        if code == _KEY_UNKNOWN:
            return self.doubts.denied(self.key.key_id)
        if code == TOO_MANY_CONNECTIONS:
            # Fewer lines are better than none.
            self.most = max(1, len(self.lines) - 1)
            self.streak.crowded()
            self.tether.crowded()
        return LineLostError(f"the server refused it with {code}")
