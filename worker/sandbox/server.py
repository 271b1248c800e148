"""The server: what all connections share."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrogram.raw.core import Vector

from worker.log import get_logger
from worker.sandbox import vocabulary
from worker.sandbox.challenges import Challenges
from worker.sandbox.connection import Connection
from worker.sandbox.faults import Rules
from worker.sandbox.layers import older
from worker.sandbox.ledger import Ledger
from worker.sandbox.presence import Presence
from worker.sandbox.progress import Progress
from worker.sandbox.references import References
from worker.sandbox.session import Session
from worker.sandbox.shaping import Shape
from worker.sandbox.wire.framing import TOO_MANY_CONNECTIONS, accept, transport_error
from worker.sandbox.wire.rsa_key import load_or_make

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from worker.sandbox.ledger.rows import Key

log = get_logger(__name__)

IDLE_SESSIONS = 32


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """How a loopback Telegram is started. ``state`` None is a temporary directory, removed at the end."""

    host: str = "127.0.0.1"
    port: int = 0
    admin_port: int = 0
    state: Path | None = None
    code: str = "12345"
    dc_id: int = 2
    # Above 2^31, as channels made today are; an old client may need a lower start.
    first_channel_id: int = 2_400_000_001
    rtt_ms: float = 0.0
    mbps: float = 0.0
    account_mbps: float = 0.0
    # Seconds until a file reference has to be fetched anew; 0 means never.
    reference_lifetime: float = 0.0
    # Connections of one address at once; the next is answered with transport error -429. 0 is unlimited.
    connections_per_address: int = 0
    # How far behind a client may be and still be told every single change of a channel.
    difference_limit: int = 3000
    record_all_calls: bool = False
    as_json: bool = False
    # Stop once nobody holds a shared lock on this file; None is until a signal.
    users: Path | None = None


class Sandbox:
    """Ledger, rules and sessions of one running server."""

    def __init__(self, options: SandboxOptions, state: Path) -> None:
        vocabulary.install()
        self.options = options
        self.ledger = Ledger(state, options.first_channel_id)
        self.rsa_key = load_or_make(state)
        self.rules = Rules()
        shape = Shape(options.rtt_ms, options.mbps, options.account_mbps)
        self.presence = Presence(self.ledger, shape, options.connections_per_address)
        self.threads = ThreadPoolExecutor(2, thread_name_prefix="sandbox")
        self.challenges = Challenges()
        self.references = self._references()
        self.progress = Progress()
        self.port = 0
        self._calls: set[asyncio.Task[None]] = set()
        self._sessions: dict[int, dict[int, Session]] = {}

    def _references(self) -> References:
        db = self.ledger.db
        secret = db.setting("reference_secret", "") or secrets.token_hex(16)
        db.set("reference_secret", secret)
        generation = int(db.setting("reference_generation", "0"))
        return References(bytes.fromhex(secret), self.options.reference_lifetime, generation)

    @property
    def repeats_are_errors(self) -> bool:
        """Whether a repeated random_id is refused, instead of answered with the original message."""
        return self.ledger.db.setting("repeats_are_errors", "0") == "1"

    def encode(self, result: Any, layer: int) -> bytes:
        """Return an object in the words of a client's layer."""
        if 0 < layer <= older.OLD_LAYER:
            result = older.translate(result)
        return bytes(Vector(result) if isinstance(result, list) else result.write())

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; whatever goes wrong on it ends it and nothing else."""
        address = writer.get_extra_info("peername")[0]
        task = asyncio.current_task()
        assert task is not None
        crowded = self.presence.is_crowded(address)
        self.presence.arrived(address, task)
        try:
            channel = await accept(reader, writer)
            if crowded:
                await channel.send(transport_error(TOO_MANY_CONNECTIONS))
            else:
                await Connection(self, channel, address).run()
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            log.debug("sandbox.connection.refused", address=address, reason=str(end))
        finally:
            self.presence.gone(address, task)
            writer.close()

    def session(self, key: Key, session_id: int) -> Session:
        """Return the session, making it when it is met for the first time."""
        sessions = self._sessions.setdefault(key.key_id, {})
        if session_id not in sessions:
            _forget_idle(sessions)
            sessions[session_id] = Session(key.key_id, session_id, key.layer)
        return sessions[session_id]

    def forget_session(self, key_id: int, session_id: int) -> bool:
        return self._sessions.get(key_id, {}).pop(session_id, None) is not None

    def sessions_of(self, user_id: int) -> list[Session]:
        """Return the sessions of an account that are to hear of news."""
        return [
            session
            for key_id in self.ledger.keys.of(user_id)
            for session in self._sessions.get(key_id, {}).values()
            if session.wants_updates
        ]

    def run(self, call: Coroutine[Any, Any, None]) -> None:
        """Carry out a call to its end, whatever becomes of the connection it came by."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def close(self) -> None:
        await self.presence.send_home()
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.ledger.close()


def _forget_idle(sessions: dict[int, Session]) -> None:
    """Clients invent a session per start: of those nobody is connected with, the oldest go."""
    idle = [session_id for session_id, session in sessions.items() if session.connection is None]
    for session_id in idle[: max(0, len(idle) - IDLE_SESSIONS)]:
        del sessions[session_id]
