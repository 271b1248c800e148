"""The outbox on a Telegram: order, independence, coalescing and paces, read from the server's own ledger."""

import asyncio
import contextlib
import itertools
from collections import Counter
from unittest.mock import ANY

from world import PHONES, open_world

from worker.clock import SystemClock
from worker.config.settings import Settings
from worker.fleet.governance import chat_paces, open_governance
from worker.fleet.process import telegram_server
from worker.fleet.text_transport import TextTransport
from worker.flow.outbox import Outbox
from worker.flow.outbox_answer import RetryPolicy
from worker.flow.outbox_ops import Delete, Edit, Failed, Lane, Send, Sent, Superseded
from worker.store.accounts import add_account, load_session
from worker.store.sealing import Sealer
from worker.telegram.gateway import Gateway

# Three seconds per chat is the default; half a second per account lets both paces bind within the test.
CHAT_SECONDS, SEND_SECONDS, SEND_BURST = 3, 0.5, 3
# A pace is kept where calls leave; the ledger notes when they arrive, one a little later than another.
ON_THE_WAY = CHAT_SECONDS / 2


class _Trusted:
    def require(self):
        pass


class _Chats:
    """One transport per chat behind one outbox: a lane names its chat."""

    def __init__(self, transports):
        self._transports = transports

    async def send(self, lane, payload, random_id):
        return await self._transports[lane.chat].send(lane, payload, random_id)

    async def edit(self, lane, message, payload):
        await self._transports[lane.chat].edit(lane, message, payload)

    async def delete(self, lane, message):
        await self._transports[lane.chat].delete(lane, message)


@contextlib.asynccontextmanager
async def _open_outbox(world, database, chats, *, deadline=10, lost=10.0):
    settings = Settings.model_validate(
        {
            "telegram": {
                "api_id": 1,
                "api_hash": "0" * 32,
                "host": world.facts["host"],
                "port": world.facts["port"],
                "public_key": world.facts["public_key"],
            },
            "rate_limits": {"send_message_per_min": 60 / SEND_SECONDS},
        }
    )
    limits, clock = settings.rate_limits, SystemClock()
    account = await add_account(database, PHONES[0])
    session = await load_session(database, Sealer(bytes(32)), account.id)
    async with open_governance(database, limits, clock) as governance:
        permission = governance.permission(account.id)
        server = telegram_server(settings)
        gateway = Gateway(
            server, permission=permission, deadline=deadline, dc_id=session.dc_id, auth_key=session.auth_key
        )
        await gateway.connect()
        refs = {info.ref.telegram_id: info.ref for info in await gateway.channels()}
        transports = {
            chat: TextTransport(gateway, _Trusted(), refs[chat], lambda error: None) for chat in chats
        }
        outbox = Outbox(
            _Chats(transports), paces=chat_paces(limits), retries=RetryPolicy(lost=lost), clock=clock
        )
        gateway.on_write.append(lambda chat: outbox.left(Lane(account.id, chat)))
        try:
            yield outbox, [Lane(account.id, chat) for chat in chats]
        finally:
            await outbox.close()
            await gateway.close()


async def test_sends_and_edits_at_once_keep_order_paces_and_the_last_text(tmp_path, database_url, database):
    async with open_world(tmp_path, database_url, calm=True) as world:
        chats = [
            (await world.admin.create_channel(f"Chat {number}", admins=[PHONES[0]]))["channel_id"]
            for number in range(5)
        ]
        async with _open_outbox(world, database, chats) as (outbox, lanes):
            posted = await outbox.deliver(Send(lanes[0], "to be edited", 1))
            assert isinstance(posted, Sent)
            sends = [
                await outbox.submit(Send(lane, f"{number}", 100 * lane.chat + number))
                for number in range(4)
                for lane in lanes
            ]
            edits = [
                await outbox.submit(Edit(lanes[0], posted.message, f"edit {number}")) for number in range(100)
            ]
            assert {type(outcome) for outcome in await asyncio.gather(*map(_outcome, sends))} == {Sent}
            edits += [
                await outbox.submit(Edit(lanes[0], posted.message, f"edit {number}"))
                for number in range(100, 200)
            ]
            endings = Counter(type(outcome) for outcome in await asyncio.gather(*map(_outcome, edits)))

        written = {chat: await _texts(world, chat) for chat in chats}
        first, *others = (list(messages) for messages in written.values())
        assert first == ["edit 199", "0", "1", "2", "3"], "in order, and the last text stands"
        assert others == [["0", "1", "2", "3"]] * 4

        edit_calls = await world.admin.calls("messages.editMessage")
        assert endings == {Sent: len(edit_calls), Superseded: 200 - len(edit_calls)}
        assert 1 <= len(edit_calls) <= 2, "edits that wait are one edit"
        assert all(call["ok"] for call in edit_calls)

        send_calls = await world.admin.calls("messages.sendMessage")
        for chat in chats:
            moments = [call["at"] for call in send_calls + edit_calls if call["chat"] == chat]
            assert len(moments) == 4 + (1 + len(edit_calls)) * (chat == chats[0])
            assert _smallest_gap(moments) >= CHAT_SECONDS - ON_THE_WAY
        calls = [call["at"] for call in send_calls]
        assert len(calls) == 21, "nothing was sent twice"
        for (i, earlier), (j, later) in itertools.combinations(enumerate(calls), 2):
            assert j - i + 1 <= SEND_BURST + (later - earlier) / SEND_SECONDS + 0.5
        # One chat after the other would take a minute.
        assert calls[-1] - calls[0] < 45


async def test_what_is_done_already_counts_as_done_and_a_lost_answer_makes_no_second_message(
    tmp_path, database_url, database
):
    async with open_world(tmp_path, database_url, calm=True) as world:
        chat = (await world.admin.create_channel("Chat", admins=[PHONES[0]]))["channel_id"]
        opening = _open_outbox(world, database, [chat], deadline=2, lost=0.1)
        async with opening as (outbox, (lane,)):
            await world.admin.add_rule("messages.sendMessage", "drop_reply")
            sent = await outbox.deliver(Send(lane, "once", 1))
            assert len(await world.admin.calls("messages.sendMessage")) == 2
            assert await _texts(world, chat) == {"once": ANY}
            for _ in range(2):
                assert isinstance(await outbox.deliver(Edit(lane, sent.message, "as it is")), Sent)
            errors = [call["error"] for call in await world.admin.calls("messages.editMessage")]
            assert ["MESSAGE_NOT_MODIFIED" in error for error in errors] == [False, True]
            for _ in range(2):
                assert isinstance(await outbox.deliver(Delete(lane, sent.message)), Sent)
            assert isinstance(await outbox.deliver(Edit(lane, sent.message, "too late")), Failed)
            assert isinstance(await outbox.deliver(Send(lane, "anew", 2)), Sent), "the chat is not given up"


async def _outcome(ticket):
    return await ticket


async def _texts(world, chat):
    return {
        m["text"]: m["date"] for m in await world.admin.messages(chat) if m["kind"] == "text" or m["text"]
    }


def _smallest_gap(moments):
    return min(later - earlier for earlier, later in itertools.pairwise(sorted(moments)))
