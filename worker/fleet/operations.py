"""The operations chat of one process: who can write to it, and what waits until somebody can.

Contract. Nothing here stops, fails or delays the work: a chat that cannot be written to is complained of
once per account in the log. What concerns an account that cannot speak for itself is said by another one;
with none at hand it is kept, and logged if it was never said.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from worker.errors import FleetError, NoAccessError
from worker.fleet.governance import chat_paces
from worker.fleet.reporter import Reporter
from worker.fleet.text_transport import TextTransport
from worker.flow.outbox import Outbox
from worker.flow.outbox_ops import Lane
from worker.flow.waiting import ends_within
from worker.log import get_logger
from worker.store import channels, operations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.domain.telegram import ChannelRef
    from worker.fleet.process import Process
    from worker.pipeline.deps import Trust, Watcher
    from worker.store.accounts import Account
    from worker.telegram.gateway import Gateway

log = get_logger(__name__)
# What the last word may take; the account stays leased meanwhile. Two writes at a group's pace fit in.
_FAREWELL_SECONDS = 10.0
_MOST_UNSAID = 20


class Desk:
    """The reporters of this process that can write, and the words that wait for one."""

    def __init__(self) -> None:
        self._reporters: list[Reporter] = []
        self._unsaid: deque[str] = deque(maxlen=_MOST_UNSAID)
        self._complained: set[int] = set()

    def open(self, reporter: Reporter) -> None:
        """This reporter can write from now on."""
        self._reporters.append(reporter)
        while self._unsaid:
            reporter.alert(self._unsaid.popleft())

    def close(self, reporter: Reporter) -> None:
        """This reporter cannot write any more."""
        if reporter in self._reporters:
            self._reporters.remove(reporter)

    def alert(self, text: str) -> None:
        """Have any account say this."""
        if self._reporters:
            self._reporters[0].alert(text)
        else:
            self._unsaid.append(text)

    def complain(self, account_id: int, error: FleetError) -> None:
        """Log that an account cannot write to the chat, once."""
        if account_id not in self._complained:
            self._complained.add(account_id)
            log.warning("operations.not_writable", account=account_id, reason=str(error))

    def sign_off(self) -> None:
        """The process ends: log what nobody could say."""
        for words in self._unsaid:
            log.warning("operations.alert_not_sent", text=words)


@contextlib.asynccontextmanager
async def reporting(
    process: Process, account: Account, gateway: Gateway, trust: Trust
) -> AsyncIterator[Watcher]:
    """A watcher that reports to the operations chat for the length of the block, if there is one."""
    found = await _find_chat(process, account, gateway)
    if found is None:
        yield process.watcher
        return
    chat, message = found
    desk = process.desk

    def refused(error: FleetError) -> None:
        reporter.mute()
        desk.close(reporter)
        desk.complain(account.id, error)

    async def keep(message: int | None) -> None:
        await operations.keep_message(process.database, account.id, chat.telegram_id, message)

    transport = TextTransport(gateway, trust, chat, refused)
    outbox = Outbox(transport, paces=chat_paces(process.settings.rate_limits), clock=process.clock)
    lane = Lane(account.id, chat.telegram_id)
    gateway.on_write.append(lambda chat: outbox.left(Lane(account.id, chat)))
    reporter = Reporter(account, process.watcher, outbox, lane, process.clock, keep=keep, message=message)
    desk.open(reporter)
    speaking = asyncio.create_task(reporter.run(), name=f"reports of account {account.id}")
    try:
        yield reporter
    except Exception as error:
        await _say_farewell(process, reporter, speaking, outbox, f"ended: {error}")
        raise
    else:
        ending = "stopped" if process.stopping.is_set() else "finished"
        await _say_farewell(process, reporter, speaking, outbox, ending)
    finally:
        desk.close(reporter)
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
        await outbox.close()


async def _say_farewell(
    process: Process, reporter: Reporter, speaking: asyncio.Task[None], outbox: Outbox[str], ending: str
) -> None:
    """Whatever comes of it: the run has ended as it has ended."""
    process.desk.close(reporter)
    speaking.cancel()
    await asyncio.gather(speaking, return_exceptions=True)
    parting = asyncio.create_task(reporter.finish(ending), name="last word")
    try:
        if await ends_within(process.clock, _FAREWELL_SECONDS, parting):
            # The message that the summary replaces is deleted after it was sent.
            await outbox.close(drain=_FAREWELL_SECONDS)
            # Forgotten any sooner, a crash would leave it standing for ever.
            await reporter.sign_off()
        else:
            log.warning("operations.summary_not_sent", seconds=_FAREWELL_SECONDS)
    finally:
        parting.cancel()
        await asyncio.gather(parting, return_exceptions=True)


async def _find_chat(
    process: Process, account: Account, gateway: Gateway
) -> tuple[ChannelRef, int | None] | None:
    """The chat and the message that an earlier run left there."""
    telegram_id = process.settings.operations.chat
    if telegram_id is None:
        return None
    database = process.database
    try:
        try:
            chat = await operations.reporting_chat(database, account.id, telegram_id)
        except NoAccessError:
            # It may have joined since the account was last looked at.
            await channels.record_seen(database, account.id, await gateway.channels())
            chat = await operations.reporting_chat(database, account.id, telegram_id)
        return chat, await operations.kept_message(database, account.id, telegram_id)
    except FleetError as error:
        process.desk.complain(account.id, error)
        return None
