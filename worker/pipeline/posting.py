"""What goes through the outbox, and how it is written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import (
    CommitUnknownError,
    NotBeforeError,
    OutcomeUnknownError,
    RefusedError,
    RetryableError,
    SentBeforeError,
    WorkerTroubleError,
)
from worker.flow.outbox_ops import Closed, Delete, Expired, Failed, Lane, Send, Sent, Unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from worker.domain.telegram import ChannelRef, Document, Message, UploadedFile
    from worker.flow.outbox import Outbox
    from worker.flow.outbox_ops import Outcome
    from worker.pipeline.deps import Trust
    from worker.telegram.gateway import Gateway

    # Asked right before a write, each time; it raises if nothing may be written.
    Begin = Callable[[], Awaitable[None]]

# A send that may not start within this time is handed back, so that no hash lock is held while it waits.
_PATIENCE_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 10.0
MIME = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Posting:
    """A file to post. ``begin`` runs right before the write, and may still refuse it."""

    channel: ChannelRef
    file: UploadedFile | Document
    caption: str
    begin: Begin


class PostingTransport:
    """Writes postings of one account. It never retries: the outbox does."""

    def __init__(self, gateway: Gateway, trust: Trust) -> None:
        self._gateway = gateway
        self._trust = trust
        self.written: dict[int, Message] = {}
        self.sent_before: set[int] = set()
        self._condemned: dict[tuple[int, int], tuple[ChannelRef, Begin]] = {}

    async def send(self, lane: Lane, payload: Posting, random_id: int) -> int:  # noqa: ARG002 - one account only
        try:
            await payload.begin()
        except CommitUnknownError as error:
            # Nothing has been sent yet, and it may be begun any number of times.
            raise WorkerTroubleError(error.what) from error
        # Nothing visible may be written once the account might belong to another process.
        await self._trust.confirmed()
        try:
            message = await self._gateway.send_document(
                payload.channel, payload.file, caption=payload.caption, random_id=random_id, mime_type=MIME
            )
        except SentBeforeError:
            self.sent_before.add(random_id)
            raise
        self.written[random_id] = message
        return message.message_id

    async def edit(self, lane: Lane, message: int, payload: Posting) -> None:  # noqa: ARG002
        raise RefusedError(f"message {message} in {lane.chat} carries an archive and is never edited")

    @contextlib.contextmanager
    def condemned(self, channel: ChannelRef, message: int, begin: Begin) -> Iterator[None]:
        """Allow this message to be deleted inside the block. Reconciliation alone may say so.

        ``begin`` runs right before, and may still refuse it.
        """
        self._condemned[channel.telegram_id, message] = channel, begin
        try:
            yield
        finally:
            del self._condemned[channel.telegram_id, message]

    async def delete(self, lane: Lane, message: int) -> None:
        condemned = self._condemned.get((lane.chat, message))
        if condemned is None:
            raise RefusedError(f"message {message} in {lane.chat} is deleted by reconciliation alone")
        channel, begin = condemned
        # However long it has waited for its turn: somebody may have had the content's lock meanwhile.
        await begin()
        self._trust.require()
        await self._gateway.delete_messages(channel, [message])


async def remove(
    outbox: Outbox[Posting],
    transport: PostingTransport,
    account_id: int,
    channel: ChannelRef,
    message_id: int,
    begin: Begin,
) -> None:
    """Delete a message through the same lane; any ending but "done" raises what to do about it."""
    lane = Lane(account_id, channel.telegram_id)
    with transport.condemned(channel, message_id, begin):
        _require_sent(await outbox.deliver(Delete(lane, message_id), expires_in=_PATIENCE_SECONDS))


async def post(
    outbox: Outbox[Posting], transport: PostingTransport, account_id: int, posting: Posting, random_id: int
) -> Message:
    """Post through the account's lane of that chat; any ending but "sent" raises what to do about it."""
    lane = Lane(account_id, posting.channel.telegram_id)
    transport.sent_before.discard(random_id)
    outcome = await outbox.deliver(Send(lane, posting, random_id), expires_in=_PATIENCE_SECONDS)
    if isinstance(outcome, Unknown) and random_id in transport.sent_before:
        raise SentBeforeError("Telegram says that the message was sent before, and does not name it")
    _require_sent(outcome)
    return transport.written.pop(random_id)


def _require_sent(outcome: Outcome) -> None:
    match outcome:
        case Sent():
            return
        case Failed(error=error):
            raise error
        case Expired(seconds=seconds):
            wait = max(seconds, _LOOK_AGAIN_SECONDS)
            raise NotBeforeError("the destination takes no message yet", seconds=wait)
        case Closed():
            raise RetryableError("the outbox was closed before the message was sent")
        case _:
            raise OutcomeUnknownError("the message may or may not have been sent")
