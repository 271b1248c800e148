"""The thread that carries an account's file parts over its file connections.

One thread for all of them: it never waits for a single socket, it encrypts and decrypts several packets at
a time, and what costs time in it (cipher, hashes, sockets, files) runs without the interpreter's lock. The
event loop only hands in requests and hears of their ends; it decides what is asked for, when, and again.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from worker.errors import AccountUnusableError, FleetError, LeaseLostError, RetryableError
from worker.log import get_logger
from worker.telegram.envelope import EnvelopeError, open_all, seal_all
from worker.telegram.failures import in_words
from worker.telegram.inbox import TOGETHER, Inbox
from worker.telegram.line import Line, LineLostError, NoAnswerError
from worker.telegram.route import Request, Route
from worker.telegram.verifying import learned, resolve, verified

if TYPE_CHECKING:
    from worker.telegram.line import Answered
    from worker.telegram.part_calls import PartCall

log = get_logger(__name__)
_IDLE_SECONDS = 30.0
_TICK_SECONDS = 0.25
# A packet of four bytes is an error of the transport itself.
_TRANSPORT_ERROR = 4


class Porter:
    """Owns the lines of one account. Lives from its first request to ``close``."""

    def __init__(self, *, deadline: float) -> None:
        self._deadline = deadline
        self._routes: list[Route] = []
        self._loop = asyncio.get_running_loop()
        self._selector = selectors.DefaultSelector()
        self._ear, self._mouth = socket.socketpair()
        for end in (self._ear, self._mouth):
            end.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._inbox = Inbox()
        self._answered: list[Answered] = []
        self._end: Exception | None = None
        self._thread: threading.Thread | None = None

    def add(self, route: Route) -> None:
        """From here on the route's requests are carried."""
        self._routes.append(route)

    async def carry(self, route: Route, call: PartCall) -> Any:
        """One call over any line of the route; raises what became of it."""
        if self._end is not None:
            raise self._end
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="file parts", daemon=True)
            self._thread.start()
        request = Request(call, self._loop.create_future(), time.monotonic())
        route.pending.append(request)
        if self._end is not None:
            # The thread may have told everybody who waited just before this one came.
            raise self._end
        self.wake()
        return await request.answer

    def wake(self) -> None:
        """Have the thread look at what has changed."""
        # A full pipe has woken it already.
        with contextlib.suppress(BlockingIOError):
            self._mouth.send(b"\0")

    def abort(self, error: Exception) -> None:
        """Cut every line now, from any thread; nothing is sent any more."""
        self._end = error
        for route in self._routes:
            for line in list(route.lines):
                line.last_heard.end(route.tether)
                with contextlib.suppress(OSError):
                    line.connection.shutdown(socket.SHUT_RDWR)
        self.wake()

    async def close(self) -> None:
        """Close every line; returns when all are down."""
        self.abort(self._end or RetryableError("the connections to Telegram are closed"))
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self._selector.close()
        self._ear.close()
        self._mouth.close()

    def _run(self) -> None:
        try:
            while self._end is None:
                self._round()
        except Exception as error:
            # A bug here must fail the transfers, not leave them waiting.
            log.exception("porter.failed")
            self._end = RetryableError(f"the transfers of this account broke: {error!r}")
        finally:
            for route in self._routes:
                end = self._end or RetryableError("the connections to Telegram are closed")
                for line in list(route.lines):
                    self._drop(line, end, again=False)
                self._refuse(route, end)
            self._report()

    def _round(self) -> None:
        now = time.monotonic()
        for route in self._routes:
            self._tend(route, now)
            self._send(route, now)
        self._report()
        for key, events in self._selector.select(self._patience(now)):
            line = key.data
            if line is None:
                with contextlib.suppress(BlockingIOError):
                    while self._ear.recv(4096):
                        pass
                continue
            try:
                if events & selectors.EVENT_WRITE:
                    self._writable(line, time.monotonic())
                if events & selectors.EVENT_READ:
                    self._readable(line)
            except (LineLostError, OSError) as error:
                self._drop(line, error)
            except LeaseLostError as error:
                self._end = error
        self._open(time.monotonic())

    def _patience(self, now: float) -> float | None:
        held = self._inbox.patience(now)
        if held is not None:
            return held
        busy = any(route.outstanding for route in self._routes)
        open_lines = any(route.lines for route in self._routes)
        return _TICK_SECONDS if busy else 1.0 if open_lines else None

    def _tend(self, route: Route, now: float) -> None:
        """Open the lines that are wanted, drop those that are stuck or of no use, give up on what waits."""
        for line in list(route.lines):
            if line.under_way and now - line.moved_at > self._deadline:
                self._drop(line, NoAnswerError(f"no answer within {self._deadline:.0f} s"))
            elif not line.under_way and not route.pending and now - line.used_at > _IDLE_SECONDS:
                self._drop(line, LineLostError("not needed"), again=False)
        # The first request after the pause finds out whether the trouble lasts.
        if route.pending and now < route.open_at and (trouble := route.trouble) is not None:
            self._refuse(route, trouble)
        wanted = min(route.wanted, route.most, route.outstanding)
        while self._end is None and len(route.lines) < wanted and route.may_open(now):
            self._connect(route, now)
        if not any(line.is_connected for line in route.lines):
            while route.pending and now - route.pending[0].asked_at > self._deadline:
                request = route.pending.popleft()
                error = RetryableError(f"{request.call.method}: not connected to Telegram")
                self._answered.append((request, None, error))

    def _connect(self, route: Route, now: float) -> None:
        try:
            line = route.dial(now)
        except LeaseLostError as error:
            self._end = error
        except OSError as error:
            why = in_words(error)
            log.info("line.failed", dc=route.dc_id, reason=why, again_in=route.pause(now, why))
        else:
            self._selector.register(line.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, line)

    def _writable(self, line: Line, now: float) -> None:
        if not line.is_connected:
            failed = line.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                raise OSError(failed, "no connection")
            line.is_connected = True
            line.last_heard.begin()
        with contextlib.suppress(BlockingIOError):
            line.flush(now)
        self._watch(line)

    def _watch(self, line: Line) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.wants_to_write else 0)
        if self._selector.get_key(line.connection).events != events:
            self._selector.modify(line.connection, events, line)

    def _send(self, route: Route, now: float) -> None:
        """Give the idle lines something to do."""
        while True:
            jobs, chosen = [], []
            for line, upload in route.idle_lines():
                request = route.next(upload=upload) if len(line.under_way) < route.per_line else None
                if request is None and not line.has_due(now):
                    continue
                try:
                    jobs += line.compose(request, now)
                except (FleetError, OSError) as error:
                    assert request is not None
                    self._answered.append((request, None, error))
                    continue
                chosen.append(line)
            if not chosen:
                return
            seal_all(jobs)
            for line in chosen:
                try:
                    self._writable(line, now)
                except OSError as error:
                    self._drop(line, error)
                except LeaseLostError as error:
                    self._end = error
                    return

    def _readable(self, line: Line) -> None:
        now = time.monotonic()
        try:
            while (packet := line.receive(self._inbox.buffers, now)) is not None:
                self._inbox.put(line, *packet, now)
                if self._inbox.is_full:
                    self._open(now)
        except BlockingIOError:
            return
        except (LineLostError, OSError):
            # What came before the end may say why it ended.
            self._open(now)
            raise

    def _open(self, now: float) -> None:
        """Decrypt the packets that are due side by side, and do what they say."""
        jobs, opened = [], []
        # The held ones count as under way until they are opened.
        packets = self._inbox.due(now, more=sum(len(line.under_way) for line in self._lines()) > TOGETHER)
        for line, packet, _ in packets:
            try:
                if len(packet) == _TRANSPORT_ERROR:
                    self._drop(line, line.route.refused(int.from_bytes(packet, "little", signed=True)))
                    continue
                jobs.append(line.route.key.job(packet))
                opened.append((line, packet))
            except EnvelopeError as error:
                self._drop(line, error)
        answered: list[tuple[Route, list[Answered]]] = []
        try:
            for (line, packet), digest in zip(opened, open_all(jobs), strict=True):
                if line not in line.route.lines:
                    continue
                try:
                    answered.append((line.route, line.handle(packet, digest, now)))
                    if line.doomed is not None:
                        self._drop(line, line.doomed)
                except (EnvelopeError, LineLostError) as error:
                    self._drop(line, error)
            in_order = verified([answer for _, answers in answered for answer in answers])
            for route, answers in answered:
                self._answered += learned(route, [next(in_order) for _ in answers])
        except Exception:
            # They are no longer under way, so nobody else tells those who wait. Nobody is told twice.
            told = RetryableError("the packets could not be read")
            self._answered += [(request, None, told) for _, answers in answered for request, _, _ in answers]
            raise
        self._inbox.give_back(packets)

    def _lines(self) -> list[Line]:
        return [line for route in self._routes for line in route.lines]

    def _drop(self, line: Line, error: Exception, *, again: bool = True) -> None:
        route = line.route
        if line not in route.lines:
            return
        route.lines.remove(line)
        self._selector.unregister(line.connection)
        line.last_heard.end(route.tether)
        line.connection.close()
        told = route.loss(error)
        self._answered += [(request, None, told) for request in line.under_way.values()]
        line.under_way.clear()
        if isinstance(error, AccountUnusableError):
            self._refuse(route, error)
        if again:
            why = in_words(error)
            log.info("line.lost", dc=route.dc_id, reason=why, again_in=route.pause(time.monotonic(), why))

    def _refuse(self, route: Route, error: Exception) -> None:
        self._answered += [(request, None, error) for request in route.take_back()]

    def _report(self) -> None:
        """Tell those who wait, all in one wake-up of their loop."""
        if self._answered:
            answered, self._answered = self._answered, []
            # A loop that is closed has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(resolve, answered)
