"""More has happened in a channel than the server tells one by one."""

import pytest
from world import PHONES, open_world


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--difference-limit", "5", calm=True) as opened:
        yield opened


async def test_what_is_not_told_one_by_one_is_read_once_and_loses_no_archive(world, run, sets):
    source = world.sources[0]
    await world.post_archive(source)
    await run()
    before = max(call["id"] for call in await world.admin.calls())
    await world.admin.fill_channel(source, 20)
    await world.post_archive(source)
    await run()
    await world.check_invariants()
    assert {name: state for name, (state, *_) in (await sets()).items()} == {
        "archive-1.zip": "indexed",
        "archive-2.zip": "indexed",
    }
    asked = await world.admin.calls("updates.getChannelDifference", after=before)
    assert [call["phone"] for call in asked if call["chat"] == source] == [PHONES[0].lstrip("+")]


async def test_what_changes_after_that_is_told_again(world, run, sets):
    source = world.sources[0]
    (lonely, _) = world.make_volumes(count=2)
    (message,) = await world.post_files(source, [lonely])
    await run()
    await world.admin.fill_channel(source, 120)
    await run()
    await world.admin.delete_messages(source, [message])
    await run()
    ((state, reason, _),) = (await sets()).values()
    assert (state, reason) == ("skipped", "its messages are gone from their channel"), (
        "far below what is read again"
    )


@pytest.mark.parametrize("becomes_a_forum", ["before the gap is heard of", "while it is read again"])
async def test_a_file_swapped_unheard_in_a_group_is_found_when_it_has_become_a_forum(
    world, run, becomes_a_forum
):
    made = await world.admin.create_channel("Group", broadcast=False, members=[PHONES[0]])
    group = made["channel_id"]
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Group', 'supergroup', true)",
        group,
    )
    (lonely, _), (other, _) = world.make_volumes(count=2), world.make_volumes(count=2)
    (message,) = await world.post_files(group, [lonely])
    (decoy,) = await world.post_files(world.destination, [other])
    await world.admin.fill_channel(group, 130)
    await run()
    posted = {m["id"]: m["document_id"] for m in await world.admin.messages(world.destination)}
    if becomes_a_forum == "while it is read again":
        await world.admin.replace_document(group, message, posted[decoy])
        await run()
        await world.fetch("UPDATE source_files SET document_id = 1, file_name = $1", lonely.name)
        await world.fetch("UPDATE scan_cursors SET reread_to = last_message_id WHERE topic_id = 0")
    else:
        await world.admin.fill_channel(group, 20)
        await world.admin.replace_document(group, message, posted[decoy])
    await world.admin.do("set_forum", channel_id=group, forum=True)
    await run()
    (row,) = await world.fetch("SELECT file_name, document_id FROM source_files WHERE NOT is_gone")
    assert tuple(row) == (other.name, posted[decoy])
    left = await world.fetch("SELECT topic_id FROM scan_cursors WHERE reread_at < reread_to")
    assert left == []


async def test_w4_a_file_swapped_by_an_edit_that_was_not_told_is_found(world, run, sets):
    source = world.sources[0]
    (lonely, _), (other, _) = world.make_volumes(count=2), world.make_volumes(count=2)
    (message,) = await world.post_files(source, [lonely])
    (decoy,) = await world.post_files(world.destination, [other])
    await run()
    await world.admin.fill_channel(source, 130)
    (document,) = [
        m["document_id"] for m in await world.admin.messages(world.destination) if m["id"] == decoy
    ]
    await world.admin.replace_document(source, message, document)
    await run()
    (row,) = await world.fetch("SELECT file_name, document_id FROM source_files WHERE NOT is_gone")
    assert tuple(row) == (other.name, document)
    states = {name: state for name, (state, *_) in (await sets()).items()}
    assert states == {"volumes-1.zip": "skipped", "volumes-2.zip": "collecting"}
    (cursor,) = await world.fetch(
        "SELECT reread_at = reread_to AS done, reread_to FROM scan_cursors cu JOIN channels c ON c.id = cu.channel_id"
        " WHERE c.telegram_id = $1",
        source,
    )
    assert cursor["done"]
    assert cursor["reread_to"] >= message
