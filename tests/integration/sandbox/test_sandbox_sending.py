import asyncio

import pytest
from hang_guard import HANG_SECONDS
from pyrogram import errors, raw
from running_sandbox import made_channel, peer_of, texts_in


def message_of(answer):
    return next(u.message for u in answer.updates if isinstance(u, raw.types.UpdateNewChannelMessage))


async def send_captioned(client, peer, caption):
    """A small file with a caption, under an id of its own."""
    number = len(caption)
    await client.invoke(raw.functions.upload.SaveFilePart(file_id=number, file_part=0, bytes=b"hello"))
    media = raw.types.InputMediaUploadedDocument(
        file=raw.types.InputFile(id=number, parts=1, name="a.txt", md5_checksum=""),
        mime_type="text/plain",
        attributes=[],
    )
    query = raw.functions.messages.SendMedia(peer=peer, media=media, message=caption, random_id=number)
    return await client.invoke(query)


async def test_a_repeated_random_id_answers_with_the_original_message(sandbox, tmp_path, phone):
    channel_id = await made_channel(sandbox, phone)
    async with sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        query = raw.functions.messages.SendMessage(peer=peer, message="once", random_id=77)
        first, second = await client.invoke(query), await client.invoke(query)
    assert message_of(first).id == message_of(second).id
    assert [u.pts_count for u in second.updates if hasattr(u, "pts_count")] == [0]
    texts = [m["text"] for m in await sandbox.admin.messages(channel_id) if m["kind"] == "text"]
    assert texts == ["once"]


async def test_a_repeated_random_id_is_refused_when_the_test_asks_for_that(sandbox, tmp_path, phone):
    channel_id = await made_channel(sandbox, phone)
    await sandbox.admin.set_repeats(as_errors=True)
    async with sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        query = raw.functions.messages.SendMessage(peer=peer, message="once", random_id=77)
        await client.invoke(query)
        with pytest.raises(errors.InternalServerError, match="RANDOM_ID_DUPLICATE"):
            await client.session.send(query)


async def test_random_ids_of_two_accounts_do_not_meet(sandbox, tmp_path, phone, other):
    channel_id = await made_channel(sandbox, phone, other, broadcast=False)
    for number in (phone, other):
        async with sandbox.logged_in(number, tmp_path) as client:
            peer = await peer_of(client, channel_id)
            await client.invoke(raw.functions.messages.SendMessage(peer=peer, message=number, random_id=77))
    sent = [m for m in await sandbox.admin.messages(channel_id) if m["kind"] == "text"]
    assert [(m["text"], m["random_id"]) for m in sent] == [(phone, 77), (other, 77)]


async def test_the_same_random_id_to_another_peer_is_another_message(sandbox, tmp_path, phone):
    channels = [await made_channel(sandbox, phone)]
    channels.append((await sandbox.admin.create_channel("Others", admins=[phone]))["channel_id"])
    async with sandbox.logged_in(phone, tmp_path) as client:
        for channel_id in channels:
            peer = await peer_of(client, channel_id)
            await client.invoke(raw.functions.messages.SendMessage(peer=peer, message="both", random_id=77))
    assert [await texts_in(sandbox, channel_id) for channel_id in channels] == [["both"], ["both"]]


async def test_a_member_can_neither_edit_nor_delete_what_another_has_written(sandbox, tmp_path, phone, other):
    channel_id = await made_channel(sandbox, phone, other, broadcast=False)
    written = (await sandbox.admin.post_text(channel_id, "mine"))["message_id"]
    async with sandbox.logged_in(other, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        with pytest.raises(errors.MessageAuthorRequired):
            await client.invoke(raw.functions.messages.EditMessage(peer=peer, id=written, message="yours"))
        with pytest.raises(errors.MessageDeleteForbidden):
            await client.invoke(raw.functions.channels.DeleteMessages(channel=peer, id=[written]))
    kept = [(m["text"], m["deleted"]) for m in await sandbox.admin.messages(channel_id) if m["id"] == written]
    assert kept == [("mine", False)]


@pytest.mark.parametrize(("premium", "limit"), [(False, 1024), (True, 4096)])
async def test_a_caption_is_as_long_as_the_account_may_write(sandbox, tmp_path, phone, premium, limit):
    channel_id = await made_channel(sandbox, phone)
    await sandbox.admin.set_premium(phone, premium)
    async with sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        await send_captioned(client, peer, "x" * limit)
        with pytest.raises(errors.MediaCaptionTooLong):
            await send_captioned(client, peer, "x" * (limit + 1))
    sent = [m for m in await sandbox.admin.messages(channel_id) if m["document_id"]]
    assert [len(m["text"]) for m in sent] == [limit]


async def test_only_administrators_post_to_a_broadcast_channel(sandbox, tmp_path, phone, other):
    channel_id = await made_channel(sandbox, phone, other)
    async with sandbox.logged_in(other, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        with pytest.raises(errors.ChatAdminRequired):
            await client.invoke(raw.functions.messages.SendMessage(peer=peer, message="no", random_id=1))


async def test_a_kicked_member_finds_the_channel_private(sandbox, tmp_path, phone, other):
    channel_id = await made_channel(sandbox, phone, other)
    async with sandbox.logged_in(other, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        await sandbox.admin.kick(channel_id, other)
        with pytest.raises(errors.ChannelPrivate):
            await client.invoke(
                raw.functions.messages.GetHistory(
                    peer=peer, offset_id=0, offset_date=0, add_offset=0, limit=10, max_id=0, min_id=0, hash=0
                )
            )


async def test_an_access_hash_of_one_account_is_worthless_to_another(sandbox, tmp_path, phone, other):
    channel_id = await made_channel(sandbox, phone, other)
    async with sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
    async with sandbox.logged_in(other, tmp_path) as client:
        with pytest.raises(errors.ChannelInvalid):
            await client.invoke(raw.functions.channels.GetFullChannel(channel=peer))


async def test_a_post_reaches_the_other_members_as_an_update(sandbox, tmp_path, phone, other):
    channel_id = await made_channel(sandbox, phone, other)
    heard = asyncio.get_running_loop().create_future()
    async with sandbox.logged_in(other, tmp_path) as client:

        @client.on_message()
        async def remember(_, message):
            heard.set_result(message.text)

        await peer_of(client, channel_id)
        await sandbox.admin.post_text(channel_id, "news")
        assert await asyncio.wait_for(heard, HANG_SECONDS) == "news"


async def test_an_edit_is_held_to_the_limits_of_a_send(sandbox, tmp_path, phone):
    channel_id = await made_channel(sandbox, phone)
    async with sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        text = message_of(
            await client.invoke(raw.functions.messages.SendMessage(peer=peer, message="short", random_id=1))
        )
        captioned = message_of(await send_captioned(client, peer, "caption"))

        async def edit(message, text):
            await client.invoke(raw.functions.messages.EditMessage(peer=peer, id=message.id, message=text))

        await edit(text, "x" * 4096)
        with pytest.raises(errors.MessageTooLong):
            await edit(text, "x" * 4097)
        with pytest.raises(errors.MessageEmpty):
            await edit(text, " ")
        await edit(captioned, "x" * 1024)
        with pytest.raises(errors.MediaCaptionTooLong):
            await edit(captioned, "x" * 1025)
        await edit(captioned, "")
    assert await texts_in(sandbox, channel_id) == ["x" * 4096]


async def test_a_random_id_given_twice_in_one_call_is_refused_and_nothing_is_sent(sandbox, tmp_path, phone):
    channel_id = await made_channel(sandbox, phone)
    posted = [(await sandbox.admin.post_text(channel_id, text))["message_id"] for text in ("one", "two")]
    async with sandbox.logged_in(phone, tmp_path) as client:
        peer = await peer_of(client, channel_id)
        forward = raw.functions.messages.ForwardMessages(
            from_peer=peer, id=posted, random_id=[77, 77], to_peer=peer
        )
        with pytest.raises(errors.InternalServerError, match="RANDOM_ID_DUPLICATE"):
            await client.session.send(forward)
    assert await texts_in(sandbox, channel_id) == ["one", "two"]
