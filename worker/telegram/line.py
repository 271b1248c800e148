"""One connection that carries file parts: framing, session, acknowledgements and what is under way on it.

All of this runs in the porter's thread. A line never retries: what was under way when it broke is handed
back.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import time
import zlib
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import GzipPacked, MsgContainer

from worker.errors import FleetError, RetryableError
from worker.telegram.envelope import INNER, OUTER, EnvelopeError
from worker.telegram.failures import failure
from worker.telegram.part_calls import tl_bytes

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from worker.cipher.ige import Job
    from worker.telegram.route import Request, Route

    Answered = tuple[Request, Any, Exception | None]

MIB = 1024 * 1024
# A part with its envelope; a server that packs more into one packet is given a buffer for the occasion.
PACKET_BYTES = MIB + 64 * 1024
_LARGEST_PACKET = 1 << 24
_SEND_BYTES = 512 * 1024 + 16 * 1024
_INTERMEDIATE = b"\xee" * 4
_FRAME = 4
_BEFORE_BODY = _FRAME + OUTER + INNER
_ACKS_AT_ONCE = 8
# A packet of this size or more is payload: its bytes are a sign of life of the transfer itself.
_PAYLOAD = 4096
_MESSAGE = struct.Struct("<qii")
_RESULT = struct.Struct("<Iq")
_WRONG_CLOCK = (16, 17)
_SECONDS_AHEAD, _SECONDS_BEHIND = 30, 300


class LineLostError(RetryableError):
    """The connection broke; what was under way on it may be asked for again elsewhere."""


class Line:
    """A socket that is never waited for, and the MTProto session on it."""

    def __init__(self, route: Route, connection: socket.socket, now: float) -> None:
        self.route, self.connection = route, connection
        self.is_connected = False
        self.is_greeted = False
        self.under_way: dict[int, Request] = {}
        self.moved_at = self.used_at = now
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
            acks, self._acks = self._acks, []
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
            self._begin(buffers)
        packet = self._packet
        assert packet is not None
        whole = self._read_into(memoryview(packet), self._length)
        if self._length >= _PAYLOAD:
            self.moved_at = now
        if not whole:
            return None
        self._packet = None
        return packet, self._length

    def _begin(self, buffers: list[bytearray]) -> None:
        self._length = int.from_bytes(self._head, "little")
        if not 0 < self._length <= _LARGEST_PACKET:
            raise LineLostError(f"a packet of {self._length} bytes was announced")
        if self._length > PACKET_BYTES:
            self._packet = bytearray(self._length)
        else:
            self._packet = buffers.pop() if buffers else bytearray(PACKET_BYTES)

    def _read_into(self, buffer: memoryview, length: int) -> bool:
        received = self.connection.recv_into(buffer[self._filled : length])
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
        answered, at = [], 8
        for _ in range(int.from_bytes(body[4:8], "little")):
            message_id, sequence, length = _MESSAGE.unpack_from(body, at)
            at += _MESSAGE.size
            answered += self._message(message_id, sequence, body[at : at + length], now)
            at += length
        return answered

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
        _, answered = _RESULT.unpack_from(body)
        request = self.under_way.pop(answered, None)
        if request is None:
            return []
        self.is_greeted = True
        self.moved_at = self.used_at = now
        answer = body[_RESULT.size :]
        try:
            if int.from_bytes(answer[:4], "little") == GzipPacked.ID:
                answer = memoryview(gzip.decompress(tl_bytes(answer, 4)))
            if int.from_bytes(answer[:4], "little") == raw.types.RpcError.ID:
                code = int.from_bytes(answer[4:8], "little", signed=True)
                text = bytes(tl_bytes(answer, 8)).decode(errors="replace")
                return [(request, None, failure(request.call.method, code, text))]
            return [(request, None if request.is_cancelled else request.call.read(answer), None)]
        except (FleetError, OSError) as error:
            return [(request, None, error)]
        except (EOFError, zlib.error) as error:
            told = RetryableError(f"{request.call.method}: the answer cannot be unpacked: {error}")
            return [(request, None, told)]

    def _corrected(self, kind: int, message_id: int, body: memoryview) -> list[Answered]:
        """The server says why it refused a message unread; the message may be sent once more."""
        refused, _, code = struct.unpack_from("<qii", body, 4)
        if kind == raw.types.BadServerSalt.ID:
            self.route.salt = int.from_bytes(body[20:28], "little", signed=True)
        elif code in _WRONG_CLOCK:
            self.route.clock_offset = message_id / 2**32 - time.time()
            self._last_id = 0
        else:
            raise LineLostError(f"the server refused a message with code {code}")
        request = self.under_way.pop(refused, None)
        if request is not None:
            if request.corrections >= 3:
                error = RetryableError(f"{request.call.method}: the server keeps refusing the message")
                return [(request, None, error)]
            request.corrections += 1
            self.route.pending.appendleft(request)
        return []
