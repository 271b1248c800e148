import os
from datetime import timedelta

import pytest
from pyrogram import enums, errors, raw, types
from running_sandbox import chat, made_channel, peer_of

KIB = 1024


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "archive.zip"
    path.write_bytes(os.urandom(300 * KIB))
    return path


async def test_an_invite_link_opens_a_private_channel(sandbox, client, other):
    channel_id = await made_channel(sandbox, other)
    owner_link = await sandbox.admin.invite_link(channel_id)
    before = await client.get_chat(owner_link)
    await client.join_chat(owner_link)
    after = await client.get_chat(owner_link)
    assert before.title == after.title == "Archives"
    assert after.id == chat(channel_id)
    with pytest.raises(errors.InviteHashExpired):
        await client.join_chat("https://t.me/+doesnotexist00")


async def test_a_public_channel_is_found_by_name_read_and_joined(sandbox, client, other):
    name = f"archives{other.strip('+')}"
    channel_id = await made_channel(sandbox, other, username=name)
    await sandbox.admin.post_text(channel_id, "for all to see")
    assert [m.text async for m in client.get_chat_history(name, limit=1)] == ["for all to see"]
    await client.join_chat(name)
    assert chat(channel_id) in [d.chat.id async for d in client.get_dialogs()]
    await client.leave_chat(name)
    assert chat(channel_id) not in [d.chat.id async for d in client.get_dialogs()]


async def test_a_channel_is_filled_in_one_command(sandbox, client, phone, archive):
    channel_id = (await sandbox.admin.create_channel("Archives", admins=[phone]))["channel_id"]
    filled = await sandbox.admin.fill_channel(channel_id, 250, text="line {}")
    assert filled == {"message_ids": list(range(2, 252))}
    await sandbox.admin.fill_channel(channel_id, 3, path=archive, file_name="part-{}.zip")
    await peer_of(client, channel_id)
    texts = [m.text async for m in client.get_chat_history(chat(channel_id), reverse=True) if m.text]
    assert texts == [f"line {number}" for number in range(1, 251)]
    documents = [m["document_id"] for m in await sandbox.admin.messages(channel_id) if m["document_id"]]
    assert len(set(documents)) == 3
    found = client.search_messages(chat(channel_id), filter=enums.MessagesFilter.DOCUMENT)
    assert [m.document.file_name async for m in found] == ["part-3.zip", "part-2.zip", "part-1.zip"]


async def test_history_pages_in_both_directions(sandbox, client, phone):
    made = await sandbox.admin.create_channel("Archives", admins=[phone])
    for number in range(2, 12):
        await sandbox.admin.post_text(made["channel_id"], f"message {number}")
    peer = await peer_of(client, made["channel_id"])

    async def ids(**window):
        defaults = {"offset_id": 0, "offset_date": 0, "add_offset": 0, "limit": 3, "max_id": 0, "min_id": 0}
        query = raw.functions.messages.GetHistory(peer=peer, hash=0, **{**defaults, **window})
        return [message.id for message in (await client.invoke(query)).messages]

    assert await ids() == [11, 10, 9]
    assert await ids(offset_id=9) == [8, 7, 6]
    assert await ids(offset_id=9, add_offset=2) == [6, 5, 4]
    assert await ids(offset_id=5, add_offset=-3) == [7, 6, 5]
    assert await ids(offset_id=10, add_offset=-3) == [11, 10]
    assert await ids(max_id=5) == [4, 3, 2]
    assert await ids(min_id=9) == [11, 10]


async def test_search_finds_documents_photos_and_words(sandbox, client, phone, archive):
    made = await sandbox.admin.create_channel("Archives", admins=[phone])
    channel_id = made["channel_id"]
    document = await sandbox.admin.post_document(channel_id, archive, "a.zip", caption="first part")
    photo = await sandbox.admin.post_photo(channel_id, archive)
    await sandbox.admin.post_text(channel_id, "first of all")
    await peer_of(client, channel_id)

    async def found(**wanted):
        return [m.id async for m in client.search_messages(chat(channel_id), **wanted)]

    assert await found(filter=enums.MessagesFilter.DOCUMENT) == [document["message_id"]]
    assert await found(filter=enums.MessagesFilter.PHOTO) == [photo["message_id"]]
    assert len(await found(query="first")) == 2
    (shown,) = await client.get_messages(chat(channel_id), [document["message_id"]])
    for bounds, count in (((-1, 9), 2), ((-9, 0), 0), ((9, 99), 0)):
        after, before = (shown.date + timedelta(seconds=seconds) for seconds in bounds)
        assert len(await found(query="first", min_date=after, max_date=before)) == count
    picture = await client.get_messages(chat(channel_id), photo["message_id"])
    fetched = await client.download_media(picture, in_memory=True)
    assert fetched.getvalue() == archive.read_bytes()


async def test_each_topic_of_a_forum_is_read_on_its_own(sandbox, client, phone, archive):
    made = await sandbox.admin.create_channel("Forum", admins=[phone], forum=True)
    channel_id = made["channel_id"]
    await peer_of(client, channel_id)
    topic = await client.create_forum_topic(chat(channel_id), "Maps")
    inside = await client.send_document(chat(channel_id), str(archive), message_thread_id=topic.id)
    outside = await client.send_message(chat(channel_id), "general talk")
    titles = [found.title async for found in client.get_forum_topics(chat(channel_id))]
    assert titles == ["General", "Maps"]
    peer = await client.resolve_peer(chat(channel_id))

    async def replies(topic_id):
        query = raw.functions.messages.GetReplies(
            peer=peer,
            msg_id=topic_id,
            offset_id=0,
            offset_date=0,
            add_offset=0,
            limit=9,
            max_id=0,
            min_id=0,
            hash=0,
        )
        return [message.id for message in (await client.invoke(query)).messages]

    assert await replies(topic.id) == [inside.id, topic.id]
    assert outside.id in await replies(1)
    assert inside.id not in await replies(1)
    searched = raw.functions.messages.Search(
        peer=peer,
        q="",
        filter=raw.types.InputMessagesFilterDocument(),
        min_date=0,
        max_date=0,
        offset_id=0,
        add_offset=0,
        limit=9,
        max_id=0,
        min_id=0,
        hash=0,
        top_msg_id=1,
    )
    assert (await client.invoke(searched)).messages == []
    forward = raw.functions.messages.ForwardMessages(
        from_peer=peer, id=[outside.id], random_id=[7], to_peer=peer, top_msg_id=topic.id
    )
    await client.invoke(forward)
    assert len(await replies(topic.id)) == 3, "a forward stands in the topic it names"


async def test_who_joins_a_group_with_hidden_history_sees_nothing_older(sandbox, client, phone, other):
    channel_id = await made_channel(sandbox, other, broadcast=False, hidden_history=True)
    await sandbox.admin.post_text(channel_id, "before")
    await sandbox.admin.join(channel_id, phone)
    await sandbox.admin.post_text(channel_id, "after")
    await peer_of(client, channel_id)
    assert [m.text async for m in client.get_chat_history(chat(channel_id))] == ["after"]


async def test_an_album_is_one_group_of_messages(sandbox, client, archive):
    target = (await client.create_channel("Target")).id
    album = [types.InputMediaDocument(str(archive)), types.InputMediaDocument(str(archive), caption="both")]
    sent = await client.send_media_group(target, album)
    listed = (await sandbox.admin.messages(int(str(target)[4:])))[-2:]
    assert [message.id for message in sent] == [m["id"] for m in listed]
    assert len({m["grouped_id"] for m in listed}) == 1
    assert listed[0]["grouped_id"] is not None


async def test_a_file_of_another_data_centre_is_fetched_from_there(sandbox, client, phone, archive):
    made = await sandbox.admin.create_channel("Archives", admins=[phone])
    posted = await sandbox.admin.post_document(made["channel_id"], archive, "a.zip", dc_id=4)
    await peer_of(client, made["channel_id"])
    message = await client.get_messages(chat(made["channel_id"]), posted["message_id"])
    document = await client.invoke(
        raw.functions.channels.GetMessages(
            channel=await client.resolve_peer(chat(made["channel_id"])),
            id=[raw.types.InputMessageID(id=posted["message_id"])],
        )
    )
    found = document.messages[0].media.document
    location = raw.types.InputDocumentFileLocation(
        id=found.id, access_hash=found.access_hash, file_reference=found.file_reference, thumb_size=""
    )
    with pytest.raises(errors.FileMigrate):
        await client.invoke(raw.functions.upload.GetFile(location=location, offset=0, limit=4 * KIB))
    fetched = await client.download_media(message, in_memory=True)
    assert fetched.getvalue() == archive.read_bytes()


async def test_saved_messages_and_private_chats_reach_both_sides(sandbox, client, tmp_path, other):
    await client.send_message("me", "note to self")
    assert [m.text async for m in client.get_chat_history("me")] == ["note to self"]
    await sandbox.admin.create_account(other, "Friend")
    async with sandbox.logged_in(other, tmp_path) as friend:
        name = f"friend{other.strip('+')}"
        await friend.set_username(name)
        await client.send_message(name, "hello")
        dialogs = [d async for d in friend.get_dialogs()]
        assert [d.top_message.text for d in dialogs] == ["hello"]


async def test_a_photo_is_sent_found_copied_and_fetched(sandbox, client, archive):
    target = (await client.create_channel("Target")).id
    sent = await client.send_photo(target, str(archive), caption="look")
    copied = await client.copy_message(target, target, sent.id)
    photos = [m.id async for m in client.search_messages(target, filter=enums.MessagesFilter.PHOTO)]
    assert photos == [copied.id, sent.id]
    fetched = await client.download_media(sent, in_memory=True)
    assert fetched.getvalue() == archive.read_bytes()


async def test_a_channel_without_administrators_belongs_to_a_stranger(sandbox, client, phone):
    made = await sandbox.admin.create_channel("Source", members=[phone])
    await sandbox.admin.post_text(made["channel_id"], "not mine")
    await peer_of(client, made["channel_id"])
    message = await client.get_messages(chat(made["channel_id"]), 2)
    assert (message.text, bool(message.outgoing)) == ("not mine", False)
    with pytest.raises(errors.ChatAdminRequired):
        await client.send_message(chat(made["channel_id"]), "nor may I")
