"""A session of one key: the numbering of its messages, and where they go."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker.sandbox.connection import Connection

REMEMBERED_IDS = 2000
WAITING_UPDATES = 1000
KEPT_ANSWERS, KEPT_ANSWER_BYTES = 64, 16 * 1024


class Session:
    """What the server keeps per (key, session id). It outlives connections, not the server."""

    def __init__(self, key_id: int, session_id: int, layer: int = 0) -> None:
        self.key_id = key_id
        self.session_id = session_id
        self.greeted = False
        self.layer = layer
        self.wants_updates = False
        self.connection: Connection | None = None
        # Updates made while nobody was connected; the oldest give way: the client asks for the difference.
        self.waiting: deque[bytes] = deque(maxlen=WAITING_UPDATES)
        # Calls under way, and those whose answer the client has said it does not want.
        self.running: set[int] = set()
        self.unwanted: set[int] = set()
        # Small answers, for a client that asks again under the same id because it saw none.
        self._answers: OrderedDict[int, bytes] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._last_msg_id = 0
        self._content_sent = 0

    def is_repeat(self, msg_id: int) -> bool:
        """Remember a client's message id; say whether it came before."""
        if msg_id in self._seen:
            return True
        self._seen[msg_id] = None
        if len(self._seen) > REMEMBERED_IDS:
            self._seen.popitem(last=False)
        return False

    def keep_answer(self, msg_id: int, answer: bytes) -> None:
        if len(answer) <= KEPT_ANSWER_BYTES:
            self._answers[msg_id] = answer
        if len(self._answers) > KEPT_ANSWERS:
            self._answers.popitem(last=False)

    def answer_to(self, msg_id: int) -> bytes | None:
        return self._answers.get(msg_id)

    def knows(self, msg_id: int) -> bool:
        return msg_id in self._seen

    def next_msg_id(self, *, answer: bool) -> int:
        """Server ids end in 1 for answers and in 3 for everything the client did not ask for."""
        base = int(time.time() * 2**32) & ~0b11
        self._last_msg_id = max(base, self._last_msg_id + 4 & ~0b11)
        return self._last_msg_id + (1 if answer else 3)

    def next_seq_no(self, *, content: bool) -> int:
        """Odd for messages the client has to acknowledge."""
        number = self._content_sent * 2 + int(content)
        self._content_sent += int(content)
        return number

    def push(self, body: bytes) -> None:
        """Send an update now, or keep it for the next connection."""
        if self.connection is None:
            self.waiting.append(body)
        else:
            self.connection.post(self, body)

    def attach(self, connection: Connection) -> None:
        """From here on unasked messages go to this connection."""
        self.connection = connection
        while self.waiting:
            connection.post(self, self.waiting.popleft())

    def detach(self, connection: Connection) -> None:
        if self.connection is connection:
            self.connection = None
