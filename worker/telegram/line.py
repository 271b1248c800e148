"""One connection that carries file parts: framing, session, acknowledgements and what is under way on it.

All of this runs in the porter's thread. A line never retries: what was under way when it broke is handed
back.
"""

from __future__ import annotations

import math
import os
import struct
import time
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import GzipPacked, MsgContainer

from worker.errors import FleetError, RetryableError
from worker.telegram.envelope import INNER, OUTER, EnvelopeError
from worker.telegram.failures import failure
from worker.telegram.framing import FramingError, QuickAcks, checked_length
from worker.telegram.part_calls import tl_bytes
from worker.telegram.parting import LastHeard
from worker.telegram.unpacking import MOST_MESSAGES, MalformedError, unzipped

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from worker.cipher.ige import Job
    from worker.telegram.route import Request, Route

    Answered = tuple[Request, Any, Exception | None]

MIB = 1024 * 1024
# A part with its envelope; a server that packs more into one packet is given a buffer for the occasion.
PACKET_BYTES = MIB + 64 * 1024
_SEND_BYTES = 512 * 1024 + 16 * 1024
_INTERMEDIATE = b"\xee" * 4
_FRAME = 4
_BEFORE_BODY = _FRAME + OUTER + INNER
_ACKS_AT_ONCE, _MOST_ACKS = 8, 1024
# A packet of this size or more is payload: its bytes are a sign of life of the transfer itself.
_PAYLOAD = 4096
_MESSAGE = struct.Struct("<qii")
_RESULT = struct.Struct("<Iq")
_CORRECTION = struct.Struct("<Iqii")
_WRONG_CLOCK = (16, 17)
_SECONDS_AHEAD, _SECONDS_BEHIND = 30, 300


class LineLostError(RetryableError):
    """The connection broke; what was under way on it may be asked for again elsewhere."""


class NoAnswerError(LineLostError):
    """Nothing moved on the connection for as long as a call may take."""


class Line:
    """A socket that is never waited for, and the MTProto session on it."""

    def __init__(self, route: Route, connection: socket.socket, now: float) -> None:
        self.route, self.connection = route, connection
        self.is_connected = False
        # Why nothing more should be done with it.
        self.doomed: LineLostError | None = None
        self.is_greeted = False
        self.under_way: dict[int, Request] = {}
        self.moved_at = self.used_at = now
        self.last_heard = LastHeard()
        # The very first message says when the server is to hang up: a process may be stopped at any moment.
        self._pinged_at = -math.inf
        self._ping_seconds = route.tether.disconnect_after / 3
        self.session = int.from_bytes(os.urandom(8), "little", signed=True)
        self._last_id = 0
        self._numbered = 0
        self._seen: set[int] = set()
        self._acks: list[int] = []
        self._out = memoryview(bytearray(_SEND_BYTES))
        self._unsent = memoryview(_INTERMEDIATE)
        self._packet: bytearray | None = None
        self._head = bytearray(_FRAME)
        self._filled, self._length = 0, 0
        self._quick_acks = QuickAcks()

    @property
    def is_idle(self) -> bool:
        """Whether another packet may be put together."""
        return self.is_connected and not self._unsent

    @property
    def wants_to_write(self) -> bool:
        return not self.is_connected or bool(self._unsent)

    def compose(self, request: Request | None, now: float) -> list[Job]:
        """Put packets for this request, and for what is due besides, into the send buffer."""
        jobs, at = [], 0
        for body in self._due(now):
            start = at + _BEFORE_BODY
            self._out[start : start + len(body)] = body
            at, job = self._frame(at, len(body), self._next_id(), content=False)
            jobs.append(job)
        if request is not None:
            greeting = b"" if self.is_greeted else self.route.greeting
            start = at + _BEFORE_BODY
            self._out[start : start + len(greeting)] = greeting
            length = len(greeting) + request.call.write(self._out[start + len(greeting) :])
            message_id = self._next_id()
            if not self.under_way:
                # From here on something is waited for; until now nothing had to move.
                self.moved_at = now
            self.under_way[message_id] = request
            at, job = self._frame(at, length, message_id, content=True)
            jobs.append(job)
            self.used_at = now
        self._unsent = self._out[:at]
        return jobs

    def _due(self, now: float) -> Iterable[bytes]:
        if self._acks:
            acks, self._acks = self._acks[:_MOST_ACKS], self._acks[_MOST_ACKS:]
            yield bytes(raw.types.MsgsAck(msg_ids=acks).write())
        if now - self._pinged_at >= self._ping_seconds:
            self._pinged_at = now
            ping = raw.functions.PingDelayDisconnect(
                ping_id=self._next_id(), disconnect_delay=self.route.tether.disconnect_after
            )
            yield bytes(ping.write())

    def has_due(self, now: float) -> bool:
        """Whether acknowledgements or a ping should leave."""
        return len(self._acks) >= _ACKS_AT_ONCE or now - self._pinged_at >= self._ping_seconds

    def _frame(self, at: int, length: int, message_id: int, *, content: bool) -> tuple[int, Job]:
        sequence = self._numbered * 2 + int(content)
        self._numbered += int(content)
        head = (self.route.salt, self.session, message_id, sequence)
        size, job = self.route.key.seal(self._out[at + _FRAME :], head, length)
        self._out[at : at + _FRAME] = size.to_bytes(_FRAME, "little")
        return at + _FRAME + size, job

    def _next_id(self) -> int:
        now = int((time.time() + self.route.clock_offset) * 2**32) & ~0b11
        self._last_id = max(now, self._last_id + 4)
        return self._last_id

    def flush(self, now: float) -> None:
        """Hand as much as possible to the kernel."""
        while self._unsent:
            # Checked right before the write: a process that slept through its lease must not send.
            self.route.tether.may_send()
            sent = self.connection.send(self._unsent)
            if len(self._unsent) >= _PAYLOAD:
                self.moved_at = now
            self._unsent = self._unsent[sent:]

    def receive(self, buffers: list[bytearray], now: float) -> tuple[bytearray, int] | None:
        """The next packet, when all of it has arrived; None as long as it has not."""
        if self._packet is None:
            if not self._read_into(memoryview(self._head), _FRAME):
                return None
            length = int.from_bytes(self._head, "little")
            try:
                if length >> 31:
                    # The loop goes on with the next line first: this one may carry thousands of them.
                    self._quick_acks.dropped()
                    return None
                self._begin(checked_length(length), buffers)
            except FramingError as error:
                raise LineLostError(str(error)) from error
        packet = self._packet
        assert packet is not None
        whole = self._read_into(memoryview(packet), self._length)
        if self._length >= _PAYLOAD:
            self.moved_at = now
        if not whole:
            return None
        self._packet = None
        return packet, self._length

    def _begin(self, length: int, buffers: list[bytearray]) -> None:
        self._length = length
        if self._length > PACKET_BYTES:
            self._packet = bytearray(self._length)
        else:
            self._packet = buffers.pop() if buffers else bytearray(PACKET_BYTES)

    def _read_into(self, buffer: memoryview, length: int) -> bool:
        received = self.connection.recv_into(buffer[self._filled : length])
        self.last_heard.heard()
        if received == 0:
            raise LineLostError("the connection was closed")
        self._filled += received
        if self._filled < length:
            return False
        self._filled = 0
        return True

    def handle(self, packet: memoryview, digest: bytes, now: float) -> list[Answered]:
        """What an opened packet means: the requests that are answered by it, and how."""
        message_id, sequence, body = self.route.key.check(packet, digest, self.session)
        kind = int.from_bytes(body[:4], "little")
        age = time.time() + self.route.clock_offset - message_id / 2**32
        # A complaint about our clock comes with the right time, and thus seems to be off.
        if kind != raw.types.BadMsgNotification.ID and not -_SECONDS_AHEAD <= age <= _SECONDS_BEHIND:
            raise EnvelopeError("the message is too old, or from the future")
        if kind != MsgContainer.ID:
            return self._message(message_id, sequence, body, now)
        # All of it is looked at before any of it counts: an answer must not be lost with what follows it.
        messages = _contained(body)
        if len({number for number, _, _ in messages} - self._seen) < len(messages):
            raise EnvelopeError("a message came twice")
        return [each for message in messages for each in self._message(*message, now)]

    def _message(self, message_id: int, sequence: int, body: memoryview, now: float) -> list[Answered]:
        if message_id in self._seen:
            raise EnvelopeError("a message came twice")
        self._remember(message_id)
        if sequence % 2:
            self._acks.append(message_id)
        kind = int.from_bytes(body[:4], "little")
        if kind == raw.types.RpcResult.ID:
            return self._result(body, now)
        if kind in (raw.types.BadServerSalt.ID, raw.types.BadMsgNotification.ID):
            return self._corrected(kind, message_id, body)
        # Greetings, pongs, acknowledgements and news are of no use here.
        return []

    def _remember(self, message_id: int) -> None:
        self._seen.add(message_id)
        if len(self._seen) > 4000:
            self._seen = set(sorted(self._seen)[-1000:])

    def _result(self, body: memoryview, now: float) -> list[Answered]:
        if len(body) < _RESULT.size:
            return []
        _, answered = _RESULT.unpack_from(body)
        request = self.under_way.pop(answered, None)
        if request is None:
            return []
        self.is_greeted = True
        self.moved_at = self.used_at = now
        answer = body[_RESULT.size :]
        try:
            if int.from_bytes(answer[:4], "little") == GzipPacked.ID:
                answer = memoryview(unzipped(tl_bytes(answer, 4)))
            if int.from_bytes(answer[:4], "little") == raw.types.RpcError.ID:
                code = int.from_bytes(answer[4:8], "little", signed=True)
                text = bytes(tl_bytes(answer, 8)).decode(errors="replace")
                return [(request, None, failure(request.call.method, code, text))]
            return [(request, None if request.is_cancelled else request.call.read(answer), None)]
        except (FleetError, OSError) as error:
            return [(request, None, error)]
        except (MalformedError, struct.error, LookupError, ValueError) as error:
            told = RetryableError(f"{request.call.method}: the answer cannot be read: {error}")
            return [(request, None, told)]

    def _corrected(self, kind: int, message_id: int, body: memoryview) -> list[Answered]:
        """The server says why it refused a message unread; the message may be sent once more."""
        if len(body) < _CORRECTION.size + (8 if kind == raw.types.BadServerSalt.ID else 0):
            return []
        _, refused, _, code = _CORRECTION.unpack_from(body)
        if kind == raw.types.BadServerSalt.ID:
            self.route.salt = int.from_bytes(body[20:28], "little", signed=True)
        elif code in _WRONG_CLOCK:
            self.route.clock_offset = message_id / 2**32 - time.time()
            self._last_id = 0
        else:
            # Not raised: other messages of the same packet may hold answers.
            self.doomed = LineLostError(f"the server refused a message with code {code}")
            return []
        request = self.under_way.pop(refused, None)
        if request is not None:
            if request.corrections >= 3:
                error = RetryableError(f"{request.call.method}: the server keeps refusing the message")
                return [(request, None, error)]
            request.corrections += 1
            self.route.pending.appendleft(request)
        return []


def _contained(body: memoryview) -> list[tuple[int, int, memoryview]]:
    """Id, number and body of each message in a container."""
    count, at, messages = int.from_bytes(body[4:8], "little"), 8, []
    if count > MOST_MESSAGES:
        raise MalformedError(f"a container of {count} messages")
    for _ in range(count):
        start = at + _MESSAGE.size
        if start > len(body):
            raise MalformedError("a container ends before its messages do")
        message_id, sequence, length = _MESSAGE.unpack_from(body, at)
        at = start + length
        if length < 0 or at > len(body):
            raise MalformedError(f"a message of {length} bytes in a container that ends before")
        messages.append((message_id, sequence, body[start:at]))
    return messages
