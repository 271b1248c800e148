import asyncio
import time
from itertools import pairwise
from random import Random

import pytest
from hang_guard import HANG_SECONDS, until
from pyrogram import errors, raw
from pyrogram.crypto import mtproto
from pyrogram.raw.core import GzipPacked, Message
from pyrogram.session import Session
from pyrogram.session.session import Result
from running_sandbox import made_channel, peer_of, send_text, texts_in


@pytest.fixture
async def channel_id(sandbox, phone):
    return await made_channel(sandbox, phone)


@pytest.fixture
async def client(sandbox, tmp_path, phone, channel_id):
    """A client that knows the channel."""
    async with sandbox.logged_in(phone, tmp_path) as client:
        await peer_of(client, channel_id)
        yield client


async def test_a_call_is_carried_out_though_the_client_hangs_up_meanwhile(sandbox, channel_id, client):
    rule = await sandbox.admin.add_rule("messages.sendMessage", "delay", seconds=None)
    peer = await client.storage.get_peer_by_id(int(f"-100{channel_id}"))
    query = raw.functions.messages.SendMessage(peer=peer, message="gone", random_id=1)
    await client.session.send(query, wait_response=False)

    async def is_held():
        return (await sandbox.admin.rule_hits())[rule]

    async def is_applied():
        return await texts_in(sandbox, channel_id) == ["gone"]

    await until(is_held)
    await client.session.stop()
    assert not await is_applied()
    await sandbox.admin.lift_rule(rule)
    await until(is_applied)


async def test_an_answer_the_client_has_dropped_is_not_sent(sandbox, channel_id, client):
    rule = await sandbox.admin.add_rule("messages.sendMessage", "delay", seconds=None)
    sending = asyncio.create_task(send_text(client, channel_id, "dropped", 1, timeout=3))
    while not client.session.results:
        await client.session.send(raw.functions.Ping(ping_id=1))
    dropped = await client.session.send(
        raw.functions.RpcDropAnswer(req_msg_id=next(iter(client.session.results)))
    )
    assert isinstance(dropped, raw.types.RpcAnswerDroppedRunning)
    await sandbox.admin.lift_rule(rule)
    with pytest.raises(TimeoutError):
        await sending
    assert await texts_in(sandbox, channel_id) == ["dropped"]


async def test_a_call_before_the_connection_is_initialised_is_refused(sandbox, client, tmp_path):
    bare = sandbox.client("bare", tmp_path)
    await bare.load_session()
    session = Session(bare, 2, "", 0, await bare.storage.auth_key(), False)
    session.connection = bare.connection_factory(dc_id=2, server_address="", port=0, test_mode=False)
    await session.connection.connect()
    session.recv_task = asyncio.create_task(session.recv_worker())
    with pytest.raises(errors.ConnectionNotInited):
        await session.send(raw.functions.help.GetConfig())
    await session.connection.close()
    await session.recv_task
    await bare.storage.close()


async def test_a_call_repeated_under_its_own_id_is_answered_again_and_applied_once(
    sandbox, channel_id, client
):
    peer = await client.storage.get_peer_by_id(int(f"-100{channel_id}"))
    query = raw.functions.messages.SendMessage(peer=peer, message="once", random_id=1)
    session = client.session
    message = await session.msg_factory.create(query)
    packet = mtproto.pack(message, session.salt, session.session_id, session.auth_key, session.auth_key_id)
    answers = []
    for _ in range(2):
        session.results[message.msg_id] = result = Result()
        await session.connection.send(packet)
        await asyncio.wait_for(result.event.wait(), HANG_SECONDS)
        answers.append(result.value.updates[0].id)
    assert answers[0] == answers[1]
    assert await texts_in(sandbox, channel_id) == ["once"]


async def test_a_connection_that_stops_pinging_is_closed_after_the_delay_it_named(sandbox, client, phone):
    client.session.ping_task_event.set()
    await client.session.ping_task
    closed = asyncio.get_running_loop().create_future()

    @client.on_disconnect()
    async def remember(*_):
        if not closed.done():
            closed.set_result(None)

    started = time.monotonic()
    await client.session.send(raw.functions.PingDelayDisconnect(ping_id=1, disconnect_delay=1))
    await asyncio.wait_for(closed, HANG_SECONDS)
    assert time.monotonic() - started >= 1


async def test_salts_of_the_hours_to_come_can_be_asked_for(sandbox, client):
    answer = await client.session.send(raw.functions.GetFutureSalts(num=3))
    salts = answer.salts
    assert len({salt.salt for salt in salts}) == 3
    assert all(salt.valid_since < salt.valid_until for salt in salts)
    assert salts[0].valid_since <= answer.now < salts[0].valid_until
    for earlier, later in pairwise(salts):
        assert earlier.valid_since < later.valid_since <= earlier.valid_until, (
            "there is a salt for every moment"
        )


async def sent_with(session, query, salt):
    """The id of a call that names this salt, and what the server answers to it."""
    message = await session.msg_factory.create(query)
    packet = mtproto.pack(message, salt, session.session_id, session.auth_key, session.auth_key_id)
    session.results[message.msg_id] = result = Result()
    await session.connection.send(packet)
    await asyncio.wait_for(result.event.wait(), HANG_SECONDS)
    return message.msg_id, result.value


async def test_a_wrong_salt_is_answered_with_the_right_one_and_nothing_is_applied(
    sandbox, channel_id, client
):
    session = client.session
    right = (await session.send(raw.functions.GetFutureSalts(num=1))).salts[0].salt
    peer = await client.storage.get_peer_by_id(int(f"-100{channel_id}"))
    query = raw.functions.messages.SendMessage(peer=peer, message="salted", random_id=1)
    msg_id, refusal = await sent_with(session, query, right ^ 1)
    assert isinstance(refusal, raw.types.BadServerSalt)
    assert (refusal.bad_msg_id, refusal.error_code, refusal.new_server_salt) == (msg_id, 48, right)
    assert await texts_in(sandbox, channel_id) == []


async def test_a_client_with_a_wrong_salt_is_corrected_and_goes_on(sandbox, channel_id, client):
    session = client.session
    right = (await session.send(raw.functions.GetFutureSalts(num=1))).salts[0].salt
    session.salt = right ^ 1
    await send_text(client, channel_id, "salted", 1)
    assert session.salt == right
    assert await texts_in(sandbox, channel_id) == ["salted"]


async def test_a_zipped_call_is_carried_out_like_any_other(sandbox, channel_id, client):
    text = "zipped " * 100
    peer = await client.storage.get_peer_by_id(int(f"-100{channel_id}"))
    query = raw.functions.messages.SendMessage(peer=peer, message=text, random_id=1)
    assert len(GzipPacked(query).write()) < len(query.write())
    answer = await client.session.send(GzipPacked(query))
    assert answer.updates[0].random_id == 1
    assert await texts_in(sandbox, channel_id) == [text]


async def test_the_server_tells_which_messages_it_has_received(client):
    told: asyncio.Queue[object] = asyncio.Queue()

    async def remember(unasked):
        told.put_nowait(unasked)

    # The library has no caller waiting for such an answer and hands it on as it does updates.
    client.handle_updates = remember
    known = (await client.session.send(raw.functions.Ping(ping_id=1))).msg_id
    long_ago = known - (600 << 32)
    query = raw.types.MsgsStateReq(msg_ids=[known, long_ago])
    await client.session.send(query, wait_response=False)
    states = await asyncio.wait_for(told.get(), HANG_SECONDS)
    assert isinstance(states, raw.types.MsgsStateInfo)
    received, unknown = states.info.encode("latin-1")
    assert (received & 7, unknown & 7) == (4, 1)


@pytest.mark.parametrize(("wanted", "count"), [(True, 1), (False, 0)])
async def test_a_session_hears_of_news_unless_it_asks_without_updates(
    sandbox, channel_id, client, tmp_path, wanted, count
):
    listener, heard = sandbox.client("listener", tmp_path), []
    await listener.load_session()

    async def remember(update):
        heard.append(update)

    listener.handle_updates = remember
    session = Session(listener, 2, "", 0, await client.storage.auth_key(), False)
    await session.start()
    query = raw.functions.updates.GetState()
    await session.send(query if wanted else raw.functions.InvokeWithoutUpdates(query=query))
    await sandbox.admin.post_text(channel_id, "news")
    # Whatever was pushed stands before this answer on the line.
    await session.send(raw.functions.Ping(ping_id=1))
    await session.stop()
    await listener.storage.close()
    assert [type(update).__name__ for update in heard] == ["Updates"] * count


async def talk(sandbox, packet):
    """Send a packet over a fresh connection; return the first byte of the answer, none if it was closed."""
    reader, writer = await asyncio.open_connection(sandbox.facts["host"], sandbox.facts["port"])
    writer.write(b"\xef\x7f" + (len(packet) // 4).to_bytes(3, "little") + packet)
    answer = await asyncio.wait_for(reader.read(1), HANG_SECONDS)
    writer.close()
    return answer


async def test_noise_harms_nobody(sandbox, client):
    random = Random(7)
    for _ in range(60):
        await talk(sandbox, random.randbytes(4 * random.randrange(1, 60)))
        await talk(sandbox, bytes(20) + random.randbytes(4 * random.randrange(1, 60)))
    await client.invoke(raw.functions.updates.GetState())


async def test_noise_in_a_sealed_packet_harms_nobody(sandbox, client):
    random, session = Random(7), client.session
    known = sorted(raw.all.objects)
    for number in range(60):
        head = random.choice(known) if number % 2 else 0x73F1F8DC
        body = head.to_bytes(4, "little") + random.randbytes(4 * random.randrange(0, 30))
        msg_id = await session.msg_factory.allocate_message_identity()
        message = Message(Plain(body), msg_id, 1, len(body))
        session_id = random.randbytes(8)
        packet = mtproto.pack(message, session.salt, session_id, session.auth_key, session.auth_key_id)
        assert await talk(sandbox, packet)
    await client.invoke(raw.functions.updates.GetState())


class Plain:
    """Bytes in the place of an object."""

    def __init__(self, data):
        self._data = data

    def write(self):
        return self._data


async def test_every_call_of_the_api_gets_some_answer(sandbox, client, channel_id):
    """Calls nobody has built are refused by name, and none of them brings the server down."""
    refusals = set()
    for name in dir(raw.functions.messages):
        function = getattr(raw.functions.messages, name)
        if name[0].isupper() and getattr(function, "__slots__", None) == []:
            try:
                await client.session.invoke(function(), retries=1, timeout=5)
            except errors.RPCError as refused:
                refusals.add(refused.ID)
    assert "SANDBOX_BUG" not in refusals
    await client.invoke(raw.functions.updates.GetState())
