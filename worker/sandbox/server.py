"""The server: what all connections share."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from pyrogram.raw.core import Vector

from worker.sandbox import vocabulary
from worker.sandbox.challenges import Challenges
from worker.sandbox.connection import Connection
from worker.sandbox.faults import Rules
from worker.sandbox.layers import older
from worker.sandbox.ledger import Ledger
from worker.sandbox.references import References
from worker.sandbox.session import Session
from worker.sandbox.shaping import Line, Shape
from worker.sandbox.wire.framing import accept
from worker.sandbox.wire.rsa_key import load_or_make

if TYPE_CHECKING:
    from pathlib import Path

    from worker.sandbox.ledger.rows import Key

log = structlog.get_logger(__name__)


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
    record_all_calls: bool = False
    as_json: bool = False


class Sandbox:
    """Ledger, rules and sessions of one running server."""

    def __init__(self, options: SandboxOptions, state: Path) -> None:
        vocabulary.install()
        self.options = options
        self.ledger = Ledger(state, options.first_channel_id)
        self.rsa_key = load_or_make(state)
        self.rules = Rules()
        self._shape = Shape(options.rtt_ms, options.mbps, options.account_mbps)
        self.threads = ThreadPoolExecutor(2, thread_name_prefix="sandbox")
        self.challenges = Challenges()
        self.references = self._references()
        # Sends whose bytes are being put together: (account, box, peer, random_id).
        self.sending: set[tuple[int, int, int, int]] = set()
        self.port = 0
        self._sessions: dict[tuple[int, int], Session] = {}
        self._connections: dict[int, set[Connection]] = {}
        self._account_lines: dict[int, Line] = {}

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
        try:
            channel = await accept(reader, writer)
            await Connection(self, channel, address).run()
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            log.debug("sandbox.connection.refused", address=address, reason=str(end))
            writer.close()

    def session(self, key: Key, session_id: int) -> Session:
        """Return the session, making it when it is met for the first time."""
        name = (key.key_id, session_id)
        if name not in self._sessions:
            self._sessions[name] = Session(key.key_id, session_id, key.layer)
        return self._sessions[name]

    def forget_session(self, key_id: int, session_id: int) -> bool:
        return self._sessions.pop((key_id, session_id), None) is not None

    def sessions_of(self, user_id: int) -> list[Session]:
        """Return the sessions of an account that are to hear of news."""
        found = []
        for session in self._sessions.values():
            if session.wants_updates:
                key = self.ledger.keys.get(session.key_id)
                if key is not None and key.user_id == user_id and not key.dead:
                    found.append(session)
        return found

    def line(self) -> Line:
        return Line(self._shape)

    def reshape(self, shape: Shape) -> None:
        """Shape the connections made from here on."""
        self._shape = shape
        self._account_lines.clear()

    def joined(self, connection: Connection, key: Key) -> None:
        """A connection has shown its key. The same key from a second address at once kills it for good."""
        others = self._connections.setdefault(key.key_id, set())
        if any(other.address != connection.address for other in others):
            self.ledger.keys.kill(key.key_id, "AUTH_KEY_DUPLICATED")
        others.add(connection)
        connection.journal_id = self.ledger.journal.connected(key.key_id, key.user_id, connection.address)
        if key.user_id is not None:
            self.share_line(connection, key.user_id)

    def share_line(self, connection: Connection, user_id: int) -> None:
        """All connections of an account share its bandwidth."""
        shared = Shape(mbps=self._shape.account_mbps)
        connection.line.shared = self._account_lines.setdefault(user_id, Line(shared))

    def left(self, connection: Connection) -> None:
        self._connections[connection.key_id].discard(connection)
        self.ledger.journal.disconnected(connection.journal_id)

    def authorised(self, key_id: int, user_id: int) -> None:
        """A key has logged in: its open connections belong to the account from here on."""
        for connection in self._connections.get(key_id, ()):
            self.ledger.journal.authorised(connection.journal_id, user_id)
            self.share_line(connection, user_id)

    def hang_up_all_of(self, user_id: int) -> None:
        for key_id, connections in self._connections.items():
            key = self.ledger.keys.get(key_id)
            if key is not None and key.user_id == user_id:
                for connection in connections:
                    connection.hang_up()

    def close(self) -> None:
        for connections in self._connections.values():
            for connection in connections:
                connection.hang_up()
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.ledger.close()
