"""One MTProto session, with calls that are made once and end by their deadline.

The library's own ``invoke`` sleeps through flood waits and repeats failed calls; a write that is repeated
blindly may be applied twice. Here a call is sent once, and what became of it is told exactly. What arrives
is not trusted before its envelope is opened, and no more is taken in than is worked through.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.crypto import mtproto
from pyrogram.errors import RPCError
from pyrogram.session import Session
from pyrogram.session.session import Result, SessionState

from worker import faults
from worker.errors import FleetError, OutcomeUnknownError, RefusedError, RetryableError, UnreachableError
from worker.log import get_logger
from worker.telegram.envelope import EnvelopeError
from worker.telegram.failures import failure, library_failure
from worker.telegram.framing import FramingError
from worker.telegram.parting import LastHeard, was_closed_there
from worker.telegram.streak import LOOK_AT_THE_WAY, TOO_MANY_CONNECTIONS
from worker.telegram.tether import LOOSE, Tether
from worker.telegram.unpacking import Unreadable

if TYPE_CHECKING:
    from worker.telegram.doubts import KeyDoubts
    from worker.telegram.streak import Streak

log = get_logger(__name__)
# Salts and clocks are corrected by the answer; a server that keeps refusing is not worth more tries.
_CORRECTIONS = 3
# A call that has not left by then has certainly not been applied; shorter than any call's deadline.
_START_SECONDS = 4.0
# An answer to a goodbye that takes longer is none.
_GOODBYE_SECONDS = 5.0
# Packets that are opened or acted on at a time; the rest waits in the socket.
_PACKETS_AT_ONCE = 16
# A packet of four bytes is an error of the transport itself.
_TRANSPORT_ERROR, _KEY_UNKNOWN = 4, -404


class FleetSession(Session):
    """A session of the library whose waiting callers learn at once when its connection is lost.

    Its tether is asked before every call and before every reconnection, and raises when nothing may be sent
    any more. ``broken`` is why the session will never work again.
    """

    tether: Tether = LOOSE
    broken: FleetError | None = None
    _was_started = False

    def __init__(self, *args: Any, doubts: KeyDoubts, streak: Streak, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._doubts, self._streak = doubts, streak
        self._room = asyncio.Semaphore(_PACKETS_AT_ONCE)
        self._reconnecting: asyncio.Task[None] | None = None
        self._last_heard = LastHeard()

    def tie(self, tether: Tether) -> None:
        """Let the server close this session's connection soon after it hears nothing more of us."""
        self.tether = tether
        self.PING_INTERVAL = tether.disconnect_after / 3

    async def start(self) -> None:
        # After a loss the next connection waits a little, longer each time.
        await asyncio.sleep(self._streak.pause)
        if self._must_stay_stopped:
            return
        self.tether.may_send()
        self._raise_if_broken()
        losses = self._streak.count
        await super().start()
        # The library takes a refusal for a failure of the line: it says nothing and connects again.
        self._raise_if_broken()
        if not self.is_started.is_set():
            if self._streak.count == losses:
                self._streak.lost("the server could not be reached")
            return
        self._was_started = True
        self._streak.began()
        if self.recv_task is not None and self.recv_task.done():
            # Lost between the answer to the greeting and here, where nothing connects again by itself.
            self._lose("it was closed at once")

    def _raise_if_broken(self) -> None:
        if self.broken is not None:
            raise self.broken

    def _raise_if_unreachable(self) -> None:
        if self.is_started.is_set() and not self._streak.flaps:
            # After an outage this connection may well be the one that lasts.
            return
        if (trouble := self._streak.trouble) is not None:
            raise UnreachableError(f"the connection to Telegram {trouble}", remedy=LOOK_AT_THE_WAY)

    async def send(self, data: Any, wait_response: bool = True, timeout: float = Session.WAIT_TIMEOUT) -> Any:
        """The library's own messages. Every ping, the very first one too, says when to hang up."""
        if isinstance(data, raw.functions.Ping | raw.functions.PingDelayDisconnect):
            delay = self.tether.disconnect_after
            data = raw.functions.PingDelayDisconnect(ping_id=data.ping_id, disconnect_delay=delay)
        try:
            return await super().send(data, wait_response, timeout)
        except RPCError as error:
            refusal = library_failure(error)
            # Later on it is an outage like any other: sets must not pay for it.
            if isinstance(refusal, RefusedError) and not self._was_started:
                self.broken = refusal
            raise

    async def restart(self) -> None:
        """Reconnect, as the library does by itself; a refusal for good is kept for the next caller."""
        try:
            await super().restart()
        except Exception as error:  # noqa: BLE001 - the library runs this in a task that nobody awaits
            self._break(error if isinstance(error, FleetError) else library_failure(error))
        else:
            # What happened meanwhile may have been announced to a connection that was not there.
            await self.client.handle_updates(None)

    async def recv_worker(self) -> None:
        """Take in packets, as many at a time as there is room for, until the connection is lost."""
        self._last_heard.begin()
        while True:
            try:
                packet = await self.connection.recv()
            except FramingError as error:
                self._lose(str(error))
                return
            if packet is None:
                if not was_closed_there(self.connection.protocol):
                    self._last_heard.is_dead()
                self._lose("it was closed, or nothing came for too long")
                return
            self._last_heard.heard()
            if len(packet) == _TRANSPORT_ERROR:
                self._refused(int.from_bytes(packet, "little", signed=True))
                return
            await self._room.acquire()
            self._create_tracked_task(self.handle_packet(packet)).add_done_callback(self._make_room)

    def _make_room(self, _: Any) -> None:
        self._room.release()

    async def handle_packet(self, packet: bytes) -> None:
        try:
            await super().handle_packet(packet)
        except EnvelopeError as error:
            self._lose(f"a packet was not the server's: {error}")
            return
        # Only the server has the key that this packet was opened with.
        self._doubts.proven(self.auth_key_id)

    def _refused(self, code: int) -> None:
        """A transport error. It came in the clear: nothing proves who said it."""
        if code != _KEY_UNKNOWN:
            if code == TOO_MANY_CONNECTIONS:
                self._streak.crowded()
            self._lose(f"the server refused it with {code}")
            return
        denied = self._doubts.denied(self.auth_key_id)
        if not (isinstance(denied, RetryableError) and self._was_started):
            # A session that never worked is given up; the next try is another session.
            self.broken = denied
        self._lose(denied.what)

    def _lose(self, reason: str) -> None:
        """This connection is of no use any more. Make another, unless that is under way."""
        self._last_heard.end(self.tether)
        if self.state in (SessionState.STARTING, SessionState.STARTED):
            self._streak.lost(reason)
            log.info("connection.lost", dc=self.dc_id, reason=reason)
        was_started = self.is_started.is_set()
        # From here on callers wait for the next connection.
        self.is_started.clear()
        self._wake_callers()
        if was_started and self.broken is None and not self._must_stay_stopped:
            self._reconnecting = asyncio.create_task(self.restart())

    def _break(self, error: FleetError) -> None:
        """A reconnection that ended by an error: the library has given this session up for good."""
        if not isinstance(error, RetryableError):
            self.broken = error
        elif self.broken is None:
            # Only another session helps, which the account's next beginning opens.
            self.broken = UnreachableError(error.what, remedy=error.remedy or LOOK_AT_THE_WAY)
        self._wake_callers()

    def abort(self) -> None:
        """Cut the connection now, and stay away."""
        self._last_heard.end(self.tether)
        self._must_stay_stopped = True
        writer = self.connection.protocol.writer if self.connection and self.connection.protocol else None
        if writer is not None:
            writer.transport.abort()

    async def call(self, query: Any, *, deadline: float, visible: bool = False) -> Any:
        """Send one call; return its answer or raise.

        ``OutcomeUnknownError`` means that the call left this process and no answer came.
        """
        method = query.QUALNAME.removeprefix("functions.")
        with faults.around(f"telegram.{method}"):
            try:
                async with asyncio.timeout(deadline):
                    return await self._call_once(method, query, visible=visible)
            except TimeoutError:
                raise OutcomeUnknownError(f"{method}: no answer within {deadline:.0f} s") from None

    async def _call_once(self, method: str, query: Any, *, visible: bool) -> Any:
        for _ in range(_CORRECTIONS):
            answer = await self._exchange(method, query, visible=visible)
            if isinstance(answer, raw.types.BadServerSalt):
                self.salt = answer.new_server_salt
            elif isinstance(answer, raw.types.RpcError):
                raise failure(method, answer.error_code, answer.error_message)
            elif isinstance(answer, Unreadable):
                # It was applied, whatever it says.
                raise OutcomeUnknownError(f"{method}: the answer cannot be read: {answer.reason}")
            elif not isinstance(answer, raw.types.BadMsgNotification):
                return answer
        raise RetryableError(f"{method}: the server keeps refusing the message")

    async def _exchange(self, method: str, query: Any, *, visible: bool) -> Any:
        self._raise_if_broken()
        self._raise_if_unreachable()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self.is_started.wait()
        except TimeoutError:
            self._raise_if_unreachable()
            raise self.broken or RetryableError(f"{method}: not connected to Telegram") from None
        message = await self.msg_factory.create(query)
        result = self.results[message.msg_id] = Result()
        try:
            await self._transmit(method, message, visible=visible)
            await result.event.wait()
        finally:
            self.results.pop(message.msg_id, None)
        if result.value is None:
            raise OutcomeUnknownError(f"{method}: the connection was lost before the answer came")
        return result.value

    async def _transmit(self, method: str, message: Any, *, visible: bool) -> None:
        protocol = self.connection.protocol
        packed = await asyncio.get_running_loop().run_in_executor(
            protocol.crypto_executor,
            mtproto.pack,
            message,
            self.salt,
            self.session_id,
            self.auth_key,
            self.auth_key_id,
        )
        if protocol.writer is None or protocol.writer.is_closing():
            # The library would drop it silently here.
            raise RetryableError(f"{method}: not connected to Telegram")
        self.tether.may_send()
        if visible:
            self.tether.may_write()
        cancelled = _cancellations()
        try:
            await self.connection.send(packed)
        except (OSError, TimeoutError) as error:
            raise OutcomeUnknownError(f"{method}: the connection was lost while sending") from error
        if _cancellations() > cancelled:
            # The library waits by ``wait_for``, which before Python 3.12 drops one that comes at its end.
            raise asyncio.CancelledError

    async def stop(self) -> None:
        """Close the connection, after a last question: without an answer it may stand at the other end."""
        if self.is_started.is_set() and not self._must_stay_stopped:
            try:
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self.send(raw.functions.Ping(ping_id=0), timeout=_GOODBYE_SECONDS)
            except (OSError, RPCError):
                self._last_heard.is_dead()
        await super().stop()

    async def _stop(self) -> None:
        self._last_heard.end(self.tether)
        await super()._stop()
        self._wake_callers()

    def _wake_callers(self) -> None:
        for result in self.results.values():
            result.event.set()


def _cancellations() -> int:
    """How often this task was cancelled, by whoever wants it to end and by its deadlines."""
    task = asyncio.current_task()
    assert task is not None, "calls are made by tasks"
    return task.cancelling()
