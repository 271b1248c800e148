"""Who is who, who may do what where, and what a client asks about the server itself."""

import pytest
from pyrogram import enums, errors, raw, types
from running_sandbox import RunningSandbox, chat, made_channel, peer_of


@pytest.fixture
async def client(sandbox, tmp_path, phone):
    await sandbox.admin.create_account(phone, "Owner")
    async with sandbox.logged_in(phone, tmp_path) as client:
        yield client


@pytest.fixture
async def member(sandbox, tmp_path, other):
    """Somebody else, with a name to be found by."""
    await sandbox.admin.create_account(other, "Member")
    async with sandbox.logged_in(other, tmp_path) as member:
        await member.set_username(f"member{other.strip('+')}")
        member.me = await member.get_me()
        yield member


async def test_users_are_found_by_name_and_unknown_ones_are_left_out(client, member):
    found = await client.get_users(member.me.username)
    assert (found.id, found.first_name, found.is_self) == (member.me.id, "Member", False)
    assert found.phone_number is None, "a stranger's number is not shown"
    known = await client.resolve_peer(member.me.id)
    unknown = raw.types.InputUser(user_id=1, access_hash=1)
    answer = await client.invoke(raw.functions.users.GetUsers(id=[known, unknown, raw.types.InputUserSelf()]))
    assert [user.id for user in answer] == [member.me.id, client.me.id]
    with pytest.raises(errors.UsernameNotOccupied):
        await client.get_users("nobody_of_this_name")


async def test_rights_are_given_and_taken_and_a_banned_member_is_shut_out(
    sandbox, client, member, phone, other
):
    channel_id = (await sandbox.admin.create_channel("Archives", admins=[phone], members=[other]))[
        "channel_id"
    ]
    for account in (client, member):
        await peer_of(account, channel_id)
    await client.get_users(member.me.username)
    with pytest.raises(errors.ChatAdminRequired):
        await member.send_message(chat(channel_id), "not yet")
    rights = types.ChatPrivileges(can_post_messages=True)
    assert await client.promote_chat_member(chat(channel_id), member.me.id, rights)
    await member.send_message(chat(channel_id), "by an administrator")
    administrators = enums.ChatMembersFilter.ADMINISTRATORS
    listed = [m.user.id async for m in client.get_chat_members(chat(channel_id), filter=administrators)]
    assert sorted(listed) == sorted([client.me.id, member.me.id])
    await client.ban_chat_member(chat(channel_id), member.me.id)
    with pytest.raises(errors.ChannelPrivate):
        await member.send_message(chat(channel_id), "not any more")
    assert [m.user.id async for m in client.get_chat_members(chat(channel_id))] == [client.me.id]


async def test_a_member_of_a_broadcast_channel_does_not_learn_who_else_is(sandbox, member, phone, other):
    await sandbox.admin.create_account(phone, "Owner")
    channel_id = (await sandbox.admin.create_channel("Archives", admins=[phone], members=[other]))[
        "channel_id"
    ]
    await peer_of(member, channel_id)
    with pytest.raises(errors.ChatAdminRequired):
        _ = [m async for m in member.get_chat_members(chat(channel_id))]


async def test_what_was_read_is_not_counted_as_unread(sandbox, client, phone):
    channel_id = (await sandbox.admin.create_channel("Archives", members=[phone]))["channel_id"]
    await sandbox.admin.fill_channel(channel_id, 3)
    (dialog,) = [d async for d in client.get_dialogs()]
    assert dialog.unread_messages_count == 4
    await client.read_chat_history(chat(channel_id), max_id=3)
    (dialog,) = [d async for d in client.get_dialogs()]
    assert dialog.unread_messages_count == 1


async def test_the_configuration_names_this_server_for_every_data_centre(sandbox, client, phone):
    config = await client.invoke(raw.functions.help.GetConfig())
    here = (sandbox.facts["host"], sandbox.facts["port"])
    assert {option.id: (option.ip_address, option.port) for option in config.dc_options} == dict.fromkeys(
        range(1, 6), here
    )
    assert (config.this_dc, config.caption_length_max) == (sandbox.facts["dc_id"], 1024)
    await sandbox.admin.set_premium(phone, True)
    assert (await client.invoke(raw.functions.help.GetConfig())).caption_length_max == 4096


async def test_the_applications_configuration_tells_the_limits_of_uploads(client):
    told = (await client.invoke(raw.functions.help.GetAppConfig(hash=0))).config.value
    limits = {item.key: item.value.value for item in told}
    assert (limits["upload_max_fileparts_default"], limits["upload_max_fileparts_premium"]) == (4000, 8000)


async def test_a_reference_expires_by_itself_after_the_time_that_was_set(tmp_path, phone):
    running = RunningSandbox.start("--reference-lifetime", "0.000001")
    try:
        (tmp_path / "a.zip").write_bytes(b"bytes")
        channel_id = await made_channel(running, phone)
        await running.admin.post_document(channel_id, tmp_path / "a.zip", "a.zip")
        async with running.logged_in(phone, tmp_path) as client:
            peer = await peer_of(client, channel_id)
            query = raw.functions.channels.GetMessages(channel=peer, id=[raw.types.InputMessageID(id=2)])
            document = (await client.invoke(query)).messages[0].media.document
            location = raw.types.InputDocumentFileLocation(
                id=document.id,
                access_hash=document.access_hash,
                file_reference=document.file_reference,
                thumb_size="",
            )
            with pytest.raises(errors.FileReferenceExpired):
                await client.invoke(raw.functions.upload.GetFile(location=location, offset=0, limit=4096))
    finally:
        running.stop()


async def test_who_is_too_far_behind_gets_the_newest_page_instead_of_every_change(tmp_path, phone):
    running = RunningSandbox.start("--difference-limit", "5")
    try:
        channel_id = await made_channel(running, phone)
        async with running.logged_in(phone, tmp_path) as client:
            peer = await peer_of(client, channel_id)
            start = (await client.invoke(raw.functions.channels.GetFullChannel(channel=peer))).full_chat.pts
            for count, kind in ((5, "ChannelDifference"), (1, "ChannelDifferenceTooLong")):
                await running.admin.fill_channel(channel_id, count)
                query = raw.functions.updates.GetChannelDifference(
                    channel=peer, filter=raw.types.ChannelMessagesFilterEmpty(), pts=start, limit=100
                )
                answer = await client.invoke(query)
                assert type(answer).__name__ == kind
    finally:
        running.stop()
    assert (answer.dialog.pts, answer.messages[0].id) == (start + 6, 7)


@pytest.mark.parametrize("broadcast", [True, False])
async def test_a_message_names_its_sender_in_a_group_and_nobody_in_a_channel(
    sandbox, client, member, phone, other, broadcast
):
    made = await sandbox.admin.create_channel("Archives", admins=[phone, other], broadcast=broadcast)
    for author in (phone, other):
        await sandbox.admin.post_text(made["channel_id"], author, by=author)
    history = raw.functions.messages.GetHistory(
        peer=await peer_of(client, made["channel_id"]),
        **dict.fromkeys(("offset_id", "offset_date", "add_offset", "max_id", "min_id", "hash"), 0),
        limit=2,
    )
    theirs, own = (await client.invoke(history)).messages
    assert [bool(message.out) for message in (own, theirs)] == [True, False]
    senders = [message.from_id and message.from_id.user_id for message in (own, theirs)]
    assert senders == ([None, None] if broadcast else [client.me.id, member.me.id])
    assert (theirs.post_author, bool(theirs.post)) == (None, broadcast)
