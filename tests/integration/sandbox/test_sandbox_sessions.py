import asyncio
import time

import pytest
from pyrogram import errors, raw
from pyrogram.crypto import mtproto
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
    await sandbox.admin.add_rule("messages.sendMessage", "delay", seconds=0.5)
    peer = await client.storage.get_peer_by_id(int(f"-100{channel_id}"))
    query = raw.functions.messages.SendMessage(peer=peer, message="gone", random_id=1)
    await client.session.send(query, wait_response=False)
    await client.session.stop()
    deadline = time.monotonic() + 10
    while await texts_in(sandbox, channel_id) != ["gone"]:
        assert time.monotonic() < deadline


async def test_an_answer_the_client_has_dropped_is_not_sent(sandbox, channel_id, client):
    await sandbox.admin.add_rule("messages.sendMessage", "delay", seconds=1)
    sending = asyncio.create_task(send_text(client, channel_id, "dropped", 1, timeout=3))
    while not client.session.results:
        await client.session.send(raw.functions.Ping(ping_id=1))
    dropped = await client.session.send(
        raw.functions.RpcDropAnswer(req_msg_id=next(iter(client.session.results)))
    )
    assert isinstance(dropped, raw.types.RpcAnswerDroppedRunning)
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
        await asyncio.wait_for(result.event.wait(), 10)
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
    await asyncio.wait_for(closed, 10)
    assert time.monotonic() - started >= 1


async def test_salts_of_the_hours_to_come_can_be_asked_for(sandbox, client):
    answer = await client.session.send(raw.functions.GetFutureSalts(num=3))
    assert len(answer.salts) == 3
