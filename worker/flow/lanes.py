"""Multi-key locks that are taken in order of arrival.

Contract. ``async with lanes.hold(*keys)`` runs its body while no other holder has any of the keys;
``try_hold`` gives a ``Hold`` at once or raises ``BusyError``. Those who share a key enter in the order in
which they asked, those who share none never wait for each other. All keys of a request are queued in one
step that cannot be interrupted, so every lane sees the same order and no order of calls can deadlock. A key
that nobody holds or waits for leaves no trace. ``None`` and empty keys name nothing and are left out;
asking again for a key that the same task already holds could only wait for itself, and raises
``ReentryError`` instead.

Per-chat order, the runner's ordered handlers and the lane of a content hash are all this one thing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from worker.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable
    from types import TracebackType

_NAMELESS: tuple[Hashable, ...] = (None, "", b"", (), frozenset())


class ReentryError(RuntimeError):
    """A task asked for a key that it holds itself: a bug of the caller, not a state to wait for."""


class _Claim:
    """One request: its keys, the task that made it, and in how many lanes others stand before it."""

    __slots__ = ("ahead", "entered", "keys", "owner")

    def __init__(self, keys: tuple[Hashable, ...]) -> None:
        self.keys = keys
        self.owner = asyncio.current_task()
        self.ahead = 0
        self.entered: asyncio.Future[None] | None = None


class Hold:
    """Keys that are held. Leaving the ``with`` block or calling ``release`` gives them back, once."""

    __slots__ = ("_claim", "_lanes")

    def __init__(self, lanes: Lanes, claim: _Claim) -> None:
        self._lanes = lanes
        self._claim: _Claim | None = claim

    def release(self) -> None:
        """Let the next in line enter. A second call does nothing."""
        claim, self._claim = self._claim, None
        if claim is not None:
            self._lanes._leave(claim)  # noqa: SLF001  # a hold is the lanes' own handle

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Lanes:
    """One lane per key in use; the head of a lane holds its key, the others wait behind it."""

    def __init__(self) -> None:
        # Ordered dictionaries take from the head and from the middle (a cancelled waiter) in constant time.
        self._lanes: dict[Hashable, OrderedDict[_Claim, None]] = {}

    @contextlib.asynccontextmanager
    async def hold(self, *keys: Hashable) -> AsyncIterator[Hold]:
        """Wait until every key is free of those who asked before, and hold them all for the body."""
        with Hold(self, self._queue(keys)) as hold:
            claim = hold._claim  # noqa: SLF001  # a hold is the lanes' own handle
            if claim is not None and claim.ahead:
                claim.entered = asyncio.get_running_loop().create_future()
                await claim.entered
            yield hold

    def try_hold(
        self, *keys: Hashable, retry_in: float = 5.0, busy: str = "the same is being worked on"
    ) -> Hold:
        """Hold every key without waiting, or raise ``BusyError`` saying so, to come back in ``retry_in`` s.

        Keys may be anything, hashes too: ``busy`` is for a person to read and names none of them.
        """
        named = _named(keys)
        self._refuse_reentry(named)
        if any(key in self._lanes for key in named):
            raise BusyError(busy, seconds=retry_in)
        return Hold(self, self._queue(named))

    def busy(self, key: Hashable) -> bool:
        """Say whether somebody holds the key or waits for it."""
        return key in self._lanes

    def __len__(self) -> int:
        """How many keys are held or waited for."""
        return len(self._lanes)

    def _queue(self, keys: tuple[Hashable, ...]) -> _Claim:
        named = _named(keys)
        self._refuse_reentry(named)
        claim = _Claim(named)
        for key in named:
            lane = self._lanes.setdefault(key, OrderedDict())
            claim.ahead += bool(lane)
            lane[claim] = None
        return claim

    def _refuse_reentry(self, keys: tuple[Hashable, ...]) -> None:
        task = asyncio.current_task()
        for key in keys:
            lane = self._lanes.get(key)
            if lane is not None and next(iter(lane)).owner is task:
                raise ReentryError(f"this task already holds {_spoken(key)}")

    def _leave(self, claim: _Claim) -> None:
        """Take the claim out of its lanes, wherever it stands in them, and let new heads enter."""
        for key in claim.keys:
            lane = self._lanes[key]
            was_head = next(iter(lane)) is claim
            del lane[claim]
            if not lane:
                del self._lanes[key]
            elif was_head:
                self._advance(next(iter(lane)))

    def _advance(self, claim: _Claim) -> None:
        claim.ahead -= 1
        # The future is done already if its waiter was cancelled and has not yet run to take itself out.
        if not claim.ahead and claim.entered is not None and not claim.entered.done():
            claim.entered.set_result(None)


def _spoken(key: Hashable) -> str:
    """A key as a person may read it: the first digits of a hash, not its bytes."""
    if isinstance(key, bytes):
        return f"{key.hex()[:12]}…"
    if isinstance(key, tuple):
        return " ".join(map(_spoken, key))
    return str(key)


def _named(keys: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Each key once, in the given order, without those that name nothing."""
    return tuple(dict.fromkeys(key for key in keys if key not in _NAMELESS))
