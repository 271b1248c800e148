"""Faults by rule: which call, whose, the how manieth, and what shall go wrong with it."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any

from worker.sandbox.ledger.accounts import plain


class RpcFault(Exception):  # noqa: N818 - it is an answer of the protocol, not a failure of this server
    """The server's answer to a call it refuses: ``rpc_error``."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text


class Action(StrEnum):
    """What a rule does with a call it matches."""

    ERROR = "error"  # refuse it with code and text; nothing is applied
    DELAY = "delay"  # apply and answer it some seconds later, or when the rule is lifted
    LATE = "late"  # apply it at once, answer some seconds later, or when the rule is lifted
    STALL = "stall"  # neither apply nor answer it; the connection stays open
    DISCONNECT = "disconnect"  # close the connection; nothing is applied
    DROP_REPLY = "drop_reply"  # apply it, then close the connection instead of answering
    MUTE = "mute"  # apply it and never answer; the connection stays open
    FREEZE = "freeze"  # neither apply nor answer it, nor anything that follows on this connection
    CORRUPT = "corrupt"  # flip a byte of a file chunk; break the envelope of any other answer
    SHORT = "short"  # answer a file chunk with half of its bytes
    LIMIT = "limit"  # accept count calls per so many seconds, answer the rest with FLOOD_WAIT


@dataclass(slots=True)
class Rule:
    """Fires on matching calls ``nth`` to ``nth + count - 1`` since it was added; ``count`` 0 is for ever."""

    rule_id: int
    method: str
    action: Action
    nth: int = 1
    count: int = 1
    account: str | None = None
    code: int = 500
    text: str = "INTERNAL"
    # None: until the rule is lifted, however long that takes.
    seconds: float | None = 1.0
    seen: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)
    accepted: deque[float] = field(default_factory=deque, init=False)
    lifted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def matches(self, method: str, phone: str | None) -> bool:
        """Count a matching call and say whether the rule fires on it."""
        if self.method not in ("*", method.lower()):
            return False
        if self.account is not None and self.account != phone:
            return False
        self.seen += 1
        if self.action is Action.LIMIT:
            return self._is_flooded()
        fires = self.seen >= self.nth and (self.count == 0 or self.seen < self.nth + self.count)
        self.hits += fires
        return fires

    async def hold(self) -> None:
        """Keep a call for as long as the rule says."""
        if self.seconds is None:
            await self.lifted.wait()
        else:
            await asyncio.sleep(self.seconds)

    def _is_flooded(self) -> bool:
        now, seconds = time.monotonic(), self.seconds or 1.0
        while self.accepted and self.accepted[0] <= now - seconds:
            self.accepted.popleft()
        if len(self.accepted) < self.count:
            self.accepted.append(now)
            return False
        wait = math.ceil(self.accepted[0] + seconds - now)
        self.code, self.text = 420, f"FLOOD_WAIT_{max(wait, 1)}"
        self.hits += 1
        return True


class Rules:
    """The rules in force. They live in memory: a restarted server has none."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._ids = count(1)

    def add(self, method: str, action: str, **options: Any) -> int:
        account = options.pop("account", None)
        rule = Rule(
            next(self._ids),
            method.lower(),
            Action(action),
            account=None if account is None else plain(account),
            **options,
        )
        self._rules.append(rule)
        return rule.rule_id

    def lift(self, rule_id: int) -> None:
        """End a rule; the calls that it holds go on."""
        for rule in [rule for rule in self._rules if rule.rule_id == rule_id]:
            self._rules.remove(rule)
            rule.lifted.set()

    def clear(self) -> None:
        for rule in self._rules:
            rule.lifted.set()
        self._rules.clear()

    def hits(self) -> dict[int, int]:
        """Return how often each rule has fired."""
        return {rule.rule_id: rule.hits for rule in self._rules}

    def match(self, method: str, phone: str | None) -> Rule | None:
        """Return the first rule that fires on this call; every matching rule counts it."""
        firing = [rule for rule in self._rules if rule.matches(method, phone)]
        return firing[0] if firing else None
