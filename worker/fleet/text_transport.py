"""Writes text to the operations chat for one account. It never retries: the outbox does.

Contract. The lease is checked right before every write. A chat that refuses is refused for good: from then
on nothing is written to it and nothing is asked of Telegram, so that a right somebody took away costs one
call and not one per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import (
    AlreadyDoneError,
    FleetError,
    NotBeforeError,
    OutcomeUnknownError,
    RefusedError,
    RetryableError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from worker.domain.telegram import ChannelRef
    from worker.flow.outbox_ops import Lane
    from worker.pipeline.deps import Trust
    from worker.telegram.gateway import Gateway

    R = TypeVar("R")

_PASSING = (AlreadyDoneError, NotBeforeError, OutcomeUnknownError, RetryableError)


class TextTransport:
    """The chat as this account addresses it, and why it cannot be written to, if it cannot."""

    def __init__(
        self, gateway: Gateway, trust: Trust, chat: ChannelRef, on_refusal: Callable[[FleetError], None]
    ) -> None:
        self._gateway = gateway
        self._trust = trust
        self._chat = chat
        self._on_refusal = on_refusal
        self.refusal: FleetError | None = None

    async def send(self, lane: Lane, payload: str, random_id: int) -> int:  # noqa: ARG002 - one account, one chat
        async def write() -> int:
            try:
                return await self._gateway.send_text(self._chat, payload, random_id)
            except OutcomeUnknownError as error:
                if "RANDOM_ID_DUPLICATE" in error.what:
                    raise AlreadyDoneError(error.what) from error
                # Nothing depends on a report but people: the same random_id makes the repeat safe.
                raise RetryableError(error.what) from error

        return await self._guarded(write)

    async def edit(self, lane: Lane, message: int, payload: str) -> None:  # noqa: ARG002
        async def write() -> None:
            await self._gateway.edit_text(self._chat, message, payload)

        await self._guarded(write, gone_is_fine=True)

    async def delete(self, lane: Lane, message: int) -> None:  # noqa: ARG002
        async def write() -> None:
            await self._gateway.delete_messages(self._chat, [message])

        await self._guarded(write)

    async def _guarded(self, write: Callable[[], Awaitable[R]], *, gone_is_fine: bool = False) -> R:
        if self.refusal is not None:
            raise RefusedError(self.refusal.what)
        self._trust.require()
        try:
            return await write()
        except _PASSING:
            raise
        except FleetError as error:
            # A message that somebody deleted is sent anew; any other refusal would only be repeated.
            if not (gone_is_fine and "MESSAGE_ID_INVALID" in error.what):
                self.refusal = error
                self._on_refusal(error)
            raise
