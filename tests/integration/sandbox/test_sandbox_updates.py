import asyncio
import time

import pytest
from hang_guard import HANG_SECONDS
from pyrogram import raw
from running_sandbox import RunningSandbox, peer_of

MIB = 1024 * 1024


@pytest.fixture
async def client(sandbox, tmp_path, phone):
    async with sandbox.logged_in(phone, tmp_path) as client:
        yield client


async def difference(client, peer, pts, limit=100):
    query = raw.functions.updates.GetChannelDifference(
        channel=peer, filter=raw.types.ChannelMessagesFilterEmpty(), pts=pts, limit=limit
    )
    return await client.invoke(query)


async def test_the_difference_of_a_channel_tells_what_was_missed_in_order(sandbox, client, phone):
    channel_id = (await sandbox.admin.create_channel("Archives", admins=[phone]))["channel_id"]
    peer = await peer_of(client, channel_id)
    start = (await client.invoke(raw.functions.channels.GetFullChannel(channel=peer))).full_chat.pts
    for text in ("one", "two", "three"):
        await sandbox.admin.post_text(channel_id, text)
    await client.invoke(raw.functions.messages.EditMessage(peer=peer, id=3, message="second"))
    await sandbox.admin.delete_messages(channel_id, [2])

    missed = await difference(client, peer, start)
    assert [message.message for message in missed.new_messages] == ["second", "three"]
    assert [type(update).__name__ for update in missed.other_updates] == [
        "UpdateEditChannelMessage",
        "UpdateDeleteChannelMessages",
    ]
    assert (missed.pts, missed.final) == (start + 5, True)
    first = await difference(client, peer, start, limit=2)
    assert (first.pts, bool(first.final)) == (start + 2, False)
    assert isinstance(await difference(client, peer, missed.pts), raw.types.updates.ChannelDifferenceEmpty)


async def test_edits_and_deletions_are_pushed_too(sandbox, client, tmp_path, phone, other):
    channel_id = (await sandbox.admin.create_channel("Archives", admins=[phone]))["channel_id"]
    await sandbox.admin.create_account(other, "Other")
    await sandbox.admin.join(channel_id, other)
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with sandbox.logged_in(other, tmp_path) as watcher:

        @watcher.on_raw_update()
        async def remember(_client, update, _users, _chats):
            heard.put_nowait(type(update).__name__)

        await peer_of(watcher, channel_id)
        peer = await peer_of(client, channel_id)
        sent = await client.invoke(raw.functions.messages.SendMessage(peer=peer, message="one", random_id=1))
        message_id = sent.updates[0].id
        await client.invoke(raw.functions.messages.EditMessage(peer=peer, id=message_id, message="two"))
        await client.invoke(raw.functions.channels.DeleteMessages(channel=peer, id=[message_id]))
        names = [await asyncio.wait_for(heard.get(), HANG_SECONDS) for _ in range(3)]
    assert names == ["UpdateNewChannelMessage", "UpdateEditChannelMessage", "UpdateDeleteChannelMessages"]


async def test_private_messages_are_in_the_difference_of_the_account(sandbox, client):
    state = await client.invoke(raw.functions.updates.GetState())
    await client.send_message("me", "note")
    missed = await client.invoke(
        raw.functions.updates.GetDifference(pts=state.pts, date=state.date, qts=state.qts)
    )
    assert [message.message for message in missed.new_messages] == ["note"]


async def test_a_media_connection_hears_no_updates(sandbox, client, phone):
    channel_id = (await sandbox.admin.create_channel("Archives", admins=[phone]))["channel_id"]
    await peer_of(client, channel_id)
    heard: asyncio.Queue[str] = asyncio.Queue()

    @client.on_message()
    async def remember(_, message):
        heard.put_nowait(message.text)

    await client.get_session(await client.storage.dc_id(), is_media=True)
    await sandbox.admin.post_text(channel_id, "once")
    await sandbox.admin.post_text(channel_id, "twice")
    texts = [await asyncio.wait_for(heard.get(), HANG_SECONDS) for _ in range(2)]
    assert sorted(texts) == ["once", "twice"]


async def test_the_round_trip_is_as_long_as_asked_for(tmp_path, phone):
    running = RunningSandbox.start("--rtt-ms", "200")
    async with running.logged_in(phone, tmp_path) as client:

        async def one_answer():
            await client.invoke(raw.functions.updates.GetState())
            return time.monotonic() - started

        started = time.monotonic()
        first, *_, last = sorted(await asyncio.gather(*(one_answer() for _ in range(8))))
    running.stop()
    assert first >= 0.2
    assert last - first < 7 * 0.2, "they are under way side by side"


@pytest.mark.parametrize("option", ["--mbps", "--account-mbps"])
async def test_a_connection_carries_no_more_than_its_bandwidth(tmp_path, phone, option):
    running = RunningSandbox.start(option, "16")
    async with running.logged_in(phone, tmp_path) as client:
        session = await client.get_session(await client.storage.dc_id(), is_media=True)

        async def save(part):
            query = raw.functions.upload.SaveBigFilePart(
                file_id=1, file_part=part, file_total_parts=4, bytes=bytes(MIB // 2)
            )
            await session.invoke(query)

        started = time.monotonic()
        await asyncio.gather(*(save(part) for part in range(4)))
        took = time.monotonic() - started
    running.stop()
    assert took >= 2 * MIB * 8 / 16e6 * 0.9
