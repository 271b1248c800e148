"""What one account tells the operations chat: one message that follows its work, and a cry for help or two.

Contract. A watcher that passes everything on. The steps only leave word here; a task of its own renders the
message and hands it to the outbox when its text has changed. Sets that were given up go into one message
together while an earlier one still waits for its turn, so that a thousand of them are no flood. The first
message appears with the first step: an account with nothing to do stays silent.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from typing import TYPE_CHECKING

from worker.errors import FleetError
from worker.fleet.operations_text import given_up_text, progress_text, summary_text
from worker.flow.outbox_ops import Send, Sent
from worker.flow.progress import Progress
from worker.log import get_logger
from worker.store.progress import StepProgress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.clock import Clock
    from worker.flow.outbox import Outbox
    from worker.flow.outbox_ops import Lane, Outcome, Ticket
    from worker.pipeline.deps import Watcher
    from worker.store.accounts import Account

log = get_logger(__name__)
_SECONDS_BETWEEN_LOOKS = 1.0


class Reporter:
    """The account's words, and the chat's lane they go through."""

    def __init__(
        self,
        account: Account,
        inner: Watcher,
        outbox: Outbox[str],
        lane: Lane,
        clock: Clock,
        *,
        keep: Callable[[int | None], Awaitable[None]],
        message: int | None = None,
    ) -> None:
        self._account = account
        self._inner = inner
        self._outbox = outbox
        self._lane = lane
        self._clock = clock
        self._keep = keep
        self._kept = message
        self._progress = Progress(outbox, lane, _random_id, message)
        self._steps: dict[str, StepProgress] = {}
        self._ended: Counter[str] = Counter()
        self._given_up: list[tuple[str, str]] = []
        self._alerts: list[str] = []
        self._alert: Ticket | None = None
        self._changed = asyncio.Event()
        self._muted = False
        self._started = clock.monotonic()

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        self._steps[set_name] = StepProgress(set_name, step, done, total)
        self._changed.set()
        self._inner.bytes_moved(set_name, step, done, total)

    def set_ended(self, set_name: str, outcome: str) -> None:
        self._steps.pop(set_name, None)
        self._ended[outcome] += 1
        self._changed.set()
        self._inner.set_ended(set_name, outcome)

    def set_given_up(self, set_name: str, reason: str) -> None:
        self._given_up.append((set_name, reason))
        self._changed.set()
        self._inner.set_given_up(set_name, reason)

    def alert(self, text: str) -> None:
        """Send a message of its own, on behalf of whoever cannot."""
        self._alerts.append(text)
        self._changed.set()

    def mute(self) -> None:
        """The chat cannot be written to: say nothing more."""
        self._muted = True

    async def run(self) -> None:
        """Say what has changed, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not await self._say():
                self._changed.set()
            await self._clock.sleep(_SECONDS_BETWEEN_LOOKS)

    async def finish(self, ending: str) -> None:
        """Let the last word replace the message, if there ever was one."""
        await self._cry_for_help()
        while self._alert is not None:
            await self._alert
            await self._cry_for_help()
        has_worked = self._ended or self._steps or self._progress.message is not None
        if has_worked and not self._muted:
            seconds = self._clock.monotonic() - self._started
            await self._progress.finish(summary_text(self._account, ending, self._ended, seconds))

    async def sign_off(self) -> None:
        """Everything is written: nobody has to go on with the message."""
        await self._remember()

    async def _say(self) -> bool:
        """Whether there is nothing left to say."""
        if self._muted:
            return True
        await self._cry_for_help()
        shown = True
        if self._ended or self._steps:
            text = progress_text(self._account, list(self._steps.values()), self._ended)
            # Before it is edited: a kill at the edit would leave a message that nobody knows of.
            await self._remember()
            shown = await self._progress.show(text)
        await self._remember()
        return shown and not (self._alerts or self._given_up)

    async def _cry_for_help(self) -> None:
        if self._muted or self._alert is not None:
            return
        if self._given_up:
            self._alerts.append(given_up_text(self._account, self._given_up))
            self._given_up = []
        if self._alerts:
            self._alert = await self._outbox.submit(Send(self._lane, self._alerts.pop(0), _random_id()))
            self._alert.on_outcome(self._alerted)

    def _alerted(self, outcome: Outcome) -> None:
        self._alert = None
        if not isinstance(outcome, Sent):
            log.warning("operations.alert_not_sent", outcome=repr(outcome))

    async def _remember(self) -> None:
        """Whoever runs the account after a crash goes on with the same message."""
        message = self._progress.message
        if message == self._kept:
            return
        try:
            await self._keep(message)
            self._kept = message
        except FleetError as error:
            log.warning("operations.message_not_kept", reason=str(error))


def _random_id() -> int:
    return secrets.randbits(63)
