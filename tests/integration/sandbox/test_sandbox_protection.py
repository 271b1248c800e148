"""What must not be carried elsewhere: all of a protected chat, and single messages of any."""

import os

import pytest
from pyrogram import errors, raw
from running_sandbox import chat, made_channel, peer_of

KIB = 1024


@pytest.fixture
async def source(sandbox, client, phone, other):
    """A channel of somebody else's that the client reads."""
    channel_id = await made_channel(sandbox, other)
    await sandbox.admin.join(channel_id, phone)
    await peer_of(client, channel_id)
    return channel_id


@pytest.fixture
def post(sandbox, source, tmp_path):
    """Post a file there."""

    async def once():
        path = tmp_path / "archive.zip"
        path.write_bytes(os.urandom(300 * KIB))
        return await sandbox.admin.post_document(source, path, "a.zip")

    return once


async def copies_in(sandbox, target):
    """The documents that a chat of the client's holds."""
    listed = await sandbox.admin.messages(int(str(target)[4:]))
    return [message["document_id"] for message in listed if message["document_id"]]


async def protect_chat(sandbox, source, _message_id, *, protected):
    await sandbox.admin.set_noforwards(source, protected)


async def protect_message(sandbox, source, message_id, *, protected):
    await sandbox.admin.protect_message(source, message_id, protected=protected)


@pytest.mark.parametrize("protect", [protect_chat, protect_message])
async def test_protected_content_can_neither_be_forwarded_nor_sent_again(
    sandbox, client, source, post, protect
):
    posted = await post()
    target = (await client.create_channel("Target")).id
    await protect(sandbox, source, posted["message_id"], protected=True)
    with pytest.raises(errors.ChatForwardsRestricted):
        await client.forward_messages(target, chat(source), posted["message_id"])
    message = await client.get_messages(chat(source), posted["message_id"])
    with pytest.raises(errors.ChatForwardsRestricted):
        await client.send_document(target, message.document.file_id)
    await protect(sandbox, source, posted["message_id"], protected=False)
    await client.forward_messages(target, chat(source), posted["message_id"])
    await client.send_document(target, message.document.file_id)
    assert await copies_in(sandbox, target) == [posted["document_id"]] * 2


async def test_a_protected_message_says_so_and_its_neighbour_is_free(sandbox, client, source, post):
    protected, free = await post(), await post()
    await sandbox.admin.protect_message(source, protected["message_id"])
    ids = [protected["message_id"], free["message_id"]]
    shown = await client.get_messages(chat(source), ids)
    assert [bool(message.has_protected_content) for message in shown] == [True, False]
    target = (await client.create_channel("Target")).id
    await client.forward_messages(target, chat(source), free["message_id"])
    with pytest.raises(errors.ChatForwardsRestricted):
        await client.forward_messages(target, chat(source), ids)
    assert await copies_in(sandbox, target) == [free["document_id"]], "of an album nothing passes, or all"


@pytest.mark.parametrize("how", ["alone", "in an album", "forwarded"])
async def test_whoever_sends_a_message_may_protect_it(sandbox, client, source, post, how):
    posted = await post()
    (message,) = (
        await client.invoke(
            raw.functions.channels.GetMessages(
                channel=await client.resolve_peer(chat(source)),
                id=[raw.types.InputMessageID(id=posted["message_id"])],
            )
        )
    ).messages
    document = message.media.document
    media = raw.types.InputMediaDocument(
        id=raw.types.InputDocument(
            id=document.id, access_hash=document.access_hash, file_reference=document.file_reference
        )
    )
    target = (await client.create_channel("Target")).id
    peer, origin = await client.resolve_peer(target), await client.resolve_peer(chat(source))
    messages = raw.functions.messages
    query = {
        "alone": messages.SendMedia(peer=peer, media=media, message="", random_id=5, noforwards=True),
        "in an album": messages.SendMultiMedia(
            peer=peer,
            multi_media=[raw.types.InputSingleMedia(media=media, random_id=5, message="")],
            noforwards=True,
        ),
        "forwarded": messages.ForwardMessages(
            from_peer=origin, id=[message.id], random_id=[5], to_peer=peer, noforwards=True
        ),
    }[how]
    await client.invoke(query)
    sent = (await sandbox.admin.messages(int(str(target)[4:])))[-1]
    with pytest.raises(errors.ChatForwardsRestricted):
        await client.forward_messages("me", target, sent["id"])


async def test_a_protected_private_message_stays_where_it_is(sandbox, client, tmp_path, other):
    await sandbox.admin.create_account(other, "Friend")
    async with sandbox.logged_in(other, tmp_path) as friend:
        name = f"friend{other.strip('+')}"
        await friend.set_username(name)
        await client.send_message(name, "between us", protect_content=True)
        (dialog,) = [dialog async for dialog in friend.get_dialogs()]
        with pytest.raises(errors.ChatForwardsRestricted):
            await friend.forward_messages("me", dialog.chat.id, dialog.top_message.id)
