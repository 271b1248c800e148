"""One client connection: reads packets, exchanges keys, hands calls on, and writes replies in order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.sandbox import inbound, salts
from worker.sandbox.tl import MalformedError, container, read
from worker.sandbox.wire import envelope
from worker.sandbox.wire.framing import KEY_UNKNOWN, transport_error
from worker.sandbox.wire.handshake import Handshake

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.sandbox.ledger.rows import Key
    from worker.sandbox.server import Sandbox
    from worker.sandbox.session import Session
    from worker.sandbox.wire.framing import Channel

# Calls of one connection that may run at once. A call keeps its place until its answer is written, which
# bounds the memory that a client can claim by asking and not reading.
CALLS_AT_ONCE = 64
# Below this size the way to another thread and back costs more than the cipher.
THREAD_FROM = 16 * 1024
CONTAINER_UP_TO = 64 * 1024
GOODBYE_SECONDS = 2.0


@dataclass(slots=True)
class Outgoing:
    """A message waiting for its turn; ``written`` is told when it is out."""

    session: Session
    body: bytes
    answer: bool
    content: bool
    due: float
    garble: bool = False
    written: Callable[[], None] | None = None


class Connection:
    """Lives as long as its socket."""

    def __init__(self, sandbox: Sandbox, channel: Channel, address: str) -> None:
        self.sandbox = sandbox
        self.address = address
        self.line = sandbox.presence.line()
        self.slots = asyncio.Semaphore(CALLS_AT_ONCE)
        self.key_id = 0
        self.journal_id = 0
        self._channel = channel
        self._sessions: set[Session] = set()
        self._handshake = Handshake(sandbox.rsa_key)
        self._outgoing: deque[Outgoing] = deque()
        self._something = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._hung_up = False
        self._thawed = asyncio.Event()
        self._thawed.set()

    async def run(self) -> None:
        """Serve until either side hangs up."""
        writer = asyncio.create_task(self._write())
        try:
            while True:
                packet = await self._channel.receive()
                await self._thawed.wait()
                if self._hung_up:
                    break
                await self.line.upward(len(packet))
                await self._packet(packet)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, MalformedError, KeyError):
            pass
        finally:
            self._leave()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            await self._close_socket()

    async def _close_socket(self) -> None:
        self._channel.writer.close()
        with contextlib.suppress(ConnectionError, TimeoutError):
            # A client that reads no more would keep a polite goodbye waiting for ever.
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._channel.writer.wait_closed()
        self.hang_up()

    def hang_up(self) -> None:
        """Close at once; what is still queued is lost, as on a broken line."""
        self._hung_up = True
        self._channel.writer.transport.abort()
        # A frozen connection has to wake to notice its end.
        self._thawed.set()

    def freeze(self) -> None:
        """Neither read nor write from here on, without closing: a line that went silent."""
        self._thawed.clear()

    def hang_up_after(self, seconds: float) -> None:
        """Close after a while unless asked again: ping_delay_disconnect."""
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.hang_up)

    def _leave(self) -> None:
        if self._timer:
            self._timer.cancel()
        for session in self._sessions:
            session.detach(self)
        if self.key_id:
            self.sandbox.presence.left(self)

    async def _packet(self, packet: bytes) -> None:
        key_id = int.from_bytes(packet[:8], "little", signed=True)
        if key_id == 0:
            await self._plain(packet)
            return
        key = self.sandbox.ledger.keys.get(key_id)
        if key is None:
            await self._channel.send(transport_error(KEY_UNKNOWN))
            raise ConnectionError("the key is unknown here")
        opened = await self._off_loop(len(packet), envelope.open_packet, packet, key.auth_key)
        if self.key_id == 0:
            self.key_id = key_id
            self.sandbox.presence.joined(self, key)
        await inbound.receive(self, key, opened)

    async def _plain(self, packet: bytes) -> None:
        answer = self._handshake.answer(read(packet[20:]))
        if answer is None:
            return
        if self._handshake.finished:
            self.sandbox.ledger.keys.add(self._handshake.finished, self.sandbox.options.dc_id)
            self._handshake = Handshake(self.sandbox.rsa_key)
        body = answer.write()
        msg_id = (int(time.time() * 2**32) & ~0b11) | 1
        await asyncio.sleep(self.line.latency)
        await self._channel.send(
            bytes(8) + msg_id.to_bytes(8, "little") + len(body).to_bytes(4, "little") + body
        )

    async def _off_loop(self, size: int, work: Callable[..., Any], *arguments: Any) -> Any:
        if size < THREAD_FROM:
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.sandbox.threads, work, *arguments)

    def adopt(self, session: Session) -> None:
        """This connection carries the session's messages from here on."""
        self._sessions.add(session)
        session.attach(self)

    def post(
        self,
        session: Session,
        body: bytes,
        *,
        answer: bool = False,
        content: bool = True,
        garble: bool = False,
        written: Callable[[], None] | None = None,
    ) -> None:
        """Queue a message; the writer numbers, packs and sends it."""
        due = asyncio.get_running_loop().time() + self.line.latency
        self._outgoing.append(Outgoing(session, body, answer, content, due, garble, written))
        self._something.set()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            while True:
                await self._something.wait()
                if not self._outgoing:
                    self._something.clear()
                    continue
                wait = self._outgoing[0].due - loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                await self._thawed.wait()
                if self._hung_up:
                    return
                await self._send(self._next_batch(loop.time()))

    def _next_batch(self, now: float) -> list[Outgoing]:
        """Take the next message, and those behind it that fit into one container with it."""
        batch = [self._outgoing.popleft()]
        size = len(batch[0].body)
        while self._outgoing:
            following = self._outgoing[0]
            size += len(following.body)
            alike = following.session is batch[0].session and not (following.garble or batch[0].garble)
            if not alike or size > CONTAINER_UP_TO or following.due > now:
                break
            batch.append(self._outgoing.popleft())
        return batch

    async def _send(self, batch: list[Outgoing]) -> None:
        key = self.sandbox.ledger.keys.get(batch[0].session.key_id)
        if key is None:
            return
        packet = await self._seal(key, batch)
        await self.line.downward(len(packet))
        await self._channel.send(packet)
        for message in batch:
            if message.written:
                message.written()

    async def _seal(self, key: Key, batch: list[Outgoing]) -> bytes:
        session = batch[0].session
        numbered = [
            (session.next_msg_id(answer=m.answer), session.next_seq_no(content=m.content), m.body)
            for m in batch
        ]
        if len(numbered) == 1:
            msg_id, seq_no, body = numbered[0]
        else:
            body = container(numbered)
            msg_id, seq_no = session.next_msg_id(answer=False), session.next_seq_no(content=False)
        opened = envelope.Opened(salts.current(key), session.session_id, msg_id, seq_no, body)
        packed_id = key.key_id.to_bytes(8, "little", signed=True)
        sealed: bytes = await self._off_loop(len(body), envelope.seal, opened, key.auth_key, packed_id)
        if batch[0].garble:
            sealed = sealed[:-1] + bytes([sealed[-1] ^ 0xFF])
        return sealed
