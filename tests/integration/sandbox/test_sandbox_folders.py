"""The list of chats in pages, its archive, and the chat folders that clients keep on the server."""

import asyncio

import pytest
from hang_guard import HANG_SECONDS
from pyrogram import errors, raw
from running_sandbox import chat, made_channel, peer_of

NOWHERE = raw.types.InputPeerEmpty()


@pytest.fixture
async def five(sandbox, client, phone):
    """Five channels that the client knows; their ids, the newest first."""
    made = [await sandbox.admin.create_channel(f"number {number}", admins=[phone]) for number in range(5)]
    ids = sorted((channel["channel_id"] for channel in made), reverse=True)
    await peer_of(client, ids[0])
    return ids


async def page_of(client, offset_peer=NOWHERE, *, limit=9, folder=None):
    """A page of the list and the ids of its channels."""
    query = raw.functions.messages.GetDialogs(
        offset_date=0, offset_id=0, offset_peer=offset_peer, limit=limit, hash=0, folder_id=folder
    )
    page = await client.invoke(query)
    return page, {dialog.peer.channel_id for dialog in page.dialogs}


async def ids_in(client, folder=None):
    return (await page_of(client, folder=folder))[1]


async def test_dialogs_come_in_pages(client, five):
    seen, offset = [], NOWHERE
    for size in (2, 2, 1, 0):
        page, ids = await page_of(client, offset, limit=2)
        assert isinstance(page, raw.types.messages.DialogsSlice)
        assert (page.count, len(ids)) == (5, size)
        assert ids.isdisjoint(seen)
        seen += ids
        if size:
            offset = await client.resolve_peer(chat(page.dialogs[-1].peer.channel_id))
    assert sorted(seen, reverse=True) == five
    whole, _ = await page_of(client)
    assert isinstance(whole, raw.types.messages.Dialogs), "what fits on one page is not called a slice"


async def test_an_archived_chat_leaves_the_main_list_for_the_archive_until_it_is_brought_back(client, five):
    archived, *others = five
    await client.archive_chats(chat(archived))
    assert await ids_in(client, folder=0) == set(others)
    assert await ids_in(client, folder=1) == {archived}
    assert await ids_in(client) == set(five), "whoever names no folder sees both"
    page, _ = await page_of(client, folder=1)
    assert [dialog.folder_id for dialog in page.dialogs] == [1]
    await client.unarchive_chats(chat(archived))
    assert (await ids_in(client, folder=0), await ids_in(client, folder=1)) == (set(five), set())


async def test_pages_of_the_main_list_leave_out_what_is_archived(client, five):
    newest, *others = five
    await client.archive_chats(chat(newest))
    page, ids = await page_of(client, limit=3, folder=0)
    assert (page.count, ids) == (4, set(others[:3]))
    last = await client.resolve_peer(chat(page.dialogs[-1].peer.channel_id))
    assert (await page_of(client, last, limit=3, folder=0))[1] == {others[3]}


async def test_there_is_no_other_folder_to_list_or_to_move_to(client, five):
    with pytest.raises(errors.FolderIdInvalid):
        await page_of(client, folder=2)
    peers = [
        raw.types.InputFolderPeer(peer=await client.resolve_peer(chat(five[0])), folder_id=1),
        raw.types.InputFolderPeer(peer=await client.resolve_peer(chat(five[1])), folder_id=2),
    ]
    with pytest.raises(errors.FolderIdInvalid):
        await client.invoke(raw.functions.folders.EditPeerFolders(folder_peers=peers))
    assert await ids_in(client, folder=1) == set(), "all of a call is done, or nothing"


async def test_chat_folders_are_kept_changed_ordered_and_removed(client, five):
    assert await client.get_folders() == []
    first = await client.create_folder("Archives", included_chats=[chat(five[0]), chat(five[1])])
    second = await client.create_folder("Everything", include_channels=True, excluded_chats=[chat(five[2])])
    assert await client.edit_folder(first, "Maps", included_chats=[chat(five[3])])
    folders = await client.get_folders()
    assert [(folder.id, folder.name) for folder in folders] == [(first, "Maps"), (second, "Everything")]
    assert [included.id for included in folders[0].included_chats] == [chat(five[3])]
    assert [excluded.id for excluded in folders[1].excluded_chats] == [chat(five[2])]
    assert await client.reorder_folders([second, first])
    assert [folder.id for folder in await client.get_folders()] == [second, first]
    assert await client.delete_folder(second)
    assert [folder.id for folder in await client.get_folders()] == [first]
    assert await ids_in(client) == set(five), "a chat folder moves no chat"


async def test_each_account_has_chat_folders_of_its_own(sandbox, client, five, tmp_path, other):
    await client.create_folder("Archives", included_chats=[chat(five[0])])
    await sandbox.admin.create_account(other, "Somebody else")
    async with sandbox.logged_in(other, tmp_path) as somebody:
        assert await somebody.get_folders() == []


@pytest.mark.parametrize(
    ("number", "described", "refusal"),
    [
        (1, {}, errors.FilterIdInvalid),
        (256, {}, errors.FilterIdInvalid),
        (2, {"title": " "}, errors.FilterTitleEmpty),
        (2, {"broadcasts": None}, errors.FilterIncludeEmpty),
    ],
)
async def test_a_chat_folder_that_the_real_server_refuses_is_refused(client, number, described, refusal):
    described = {"title": "Archives", "broadcasts": True} | described
    title = raw.types.TextWithEntities(text=described.pop("title"), entities=[])
    folder = raw.types.DialogFilter(
        id=number, title=title, pinned_peers=[], include_peers=[], exclude_peers=[], **described
    )
    with pytest.raises(refusal):
        await client.invoke(raw.functions.messages.UpdateDialogFilter(id=number, filter=folder))
    assert await client.get_folders() == []


async def test_a_chat_folder_names_only_chats_that_the_account_sees(sandbox, client, five, other):
    elsewhere = await made_channel(sandbox, other)
    unknown = raw.types.InputPeerChannel(channel_id=elsewhere, access_hash=1)
    folder = raw.types.DialogFilter(
        id=2,
        title=raw.types.TextWithEntities(text="Archives", entities=[]),
        pinned_peers=[],
        include_peers=[await client.resolve_peer(chat(five[0])), unknown],
        exclude_peers=[],
    )
    with pytest.raises(errors.ChannelInvalid):
        await client.invoke(raw.functions.messages.UpdateDialogFilter(id=2, filter=folder))


async def test_the_accounts_other_clients_hear_of_folders(sandbox, client, five, phone, tmp_path):
    async with sandbox.logged_in(phone, tmp_path, name="elsewhere") as elsewhere:
        heard: asyncio.Queue = asyncio.Queue()

        @elsewhere.on_raw_update()
        async def remember(_client, update, _users, _chats):
            await heard.put(type(update))

        await elsewhere.get_folders()
        await client.create_folder("Archives", included_chats=[chat(five[0])])
        assert await asyncio.wait_for(heard.get(), HANG_SECONDS) is raw.types.UpdateDialogFilters
        await client.archive_chats(chat(five[0]))
        assert await asyncio.wait_for(heard.get(), HANG_SECONDS) is raw.types.UpdateFolderPeers
