"""An outbox on a manual clock, for tests."""

import asyncio

from ledger_transport import LedgerTransport
from manual_clock import ManualClock, settle

from worker.flow.outbox import Outbox
from worker.flow.outbox_ops import (
    Delete,
    Edit,
    Lane,
    Send,
)

ALICE = Lane(account=1, chat=10, is_private=True)


BOB = Lane(account=1, chat=20, is_private=True)


GROUP = Lane(account=1, chat=30)


class Office:
    """An outbox on a manual clock with a ledger behind it."""

    def __init__(self, **options) -> None:
        self.clock = ManualClock()
        self.transport = LedgerTransport(self.clock)
        self.outbox = Outbox(self.transport, clock=self.clock, **options)
        self._random_ids = iter(range(1, 100000))

    async def send(self, text, lane=ALICE, *, replaces=None, **options):
        return await self.outbox.submit(Send(lane, text, next(self._random_ids), replaces), **options)

    async def edit(self, text, message=7, lane=ALICE, **options):
        return await self.outbox.submit(Edit(lane, message, text), **options)

    async def delete(self, message=7, lane=ALICE, **options):
        return await self.outbox.submit(Delete(lane, message), **options)

    async def block(self, verb="send") -> asyncio.Event:
        """Have one operation of Alice's lane in flight until the returned event is set."""
        gate = asyncio.Event()
        self.transport.answer(verb, gate)
        await (self.send("blocking") if verb == "send" else self.delete())
        await settle()
        return gate
