"""One message in a chat that follows a piece of work, and gives way to its summary.

Contract. ``show`` is called on every step with the text as it would be by then; only a text that differs
from the last one asked for costs an edit. ``finish`` sends the summary in the message's place: the old
message goes only after the new one is there. A message that could not be sent, or that a person deleted, is
sent anew at the next step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from worker.flow.outbox_ops import Edit, Failed, Outcome, Send, Sent, Superseded

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.flow.outbox import Outbox
    from worker.flow.outbox_ops import Lane, Ticket

P = TypeVar("P")


class Progress(Generic[P]):
    """The message, if there is one, and the text it was last asked to have."""

    def __init__(
        self, outbox: Outbox[P], lane: Lane, random_id: Callable[[], int], message: int | None = None
    ) -> None:
        """With ``message``, go on with one that was there before."""
        self._outbox = outbox
        self._lane = lane
        self._random_id = random_id
        self._posting: Ticket | None = None
        self._message = message
        self._shown: P | None = None

    @property
    def message(self) -> int | None:
        """The id of the message, if there is one."""
        return self._message

    async def show(self, text: P) -> bool:
        """Let the message say ``text``, if it does not already; False if it has to be sent first."""
        if text == self._shown:
            return True
        if self._message is not None:
            self._shown = text
            ticket = await self._outbox.submit(Edit(self._lane, self._message, text))
            ticket.on_outcome(self._edited)
        elif self._posting is None:
            self._shown = text
            self._posting = await self._outbox.submit(Send(self._lane, text, self._random_id()))
            self._posting.on_outcome(self._posted)
        return self._shown == text

    async def finish(self, text: P) -> Outcome:
        """Replace the message by its last word."""
        if self._posting is not None:
            await self._posting
        summary = Send(self._lane, text, self._random_id(), replaces=self._message)
        self._message = None
        return await self._outbox.deliver(summary)

    def _posted(self, outcome: Outcome) -> None:
        self._posting = None
        if isinstance(outcome, Sent) and outcome.message is not None:
            self._message = outcome.message
        else:
            self._shown = None

    def _edited(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            self._message = None
        if not isinstance(outcome, Sent | Superseded):
            self._shown = None
