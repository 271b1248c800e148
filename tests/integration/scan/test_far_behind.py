"""More has happened in a channel than the server tells one by one."""

import pytest
from world import PHONES, open_world


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, "--difference-limit", "5") as opened:
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
