"""What an account cannot see any more is not gone, and what it has not seen is left to those who can see it."""

import asyncio
import contextlib

import pytest
from world import PHONES

A, B = PHONES


@pytest.fixture
async def group(world):
    """A supergroup that both accounts see all of, with a first archive."""
    made = await world.admin.create_channel("Group", broadcast=False, members=list(PHONES))
    channel = made["channel_id"]
    # Calls are held back here while others do what takes a busy machine some time.
    world.settings["WORKER_TELEGRAM__CALL_TIMEOUT_SECS"] = "60"
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Group', 'supergroup', true)",
        channel,
    )
    await world.post_archive(channel)
    return channel


async def _shut_out_for_a_while(world, group: int) -> None:
    """History is hidden by now; A is let in again after an archive and far more messages than are read again."""
    await world.admin.hide_history(group)
    await world.admin.kick(group, A)
    await world.post_archive(group)
    await world.admin.fill_channel(group, 120)
    await world.admin.join(group, A)
    await world.admin.post_text(group, "welcome back")


async def _sees_from(world, phone: str) -> int:
    (row,) = await world.fetch(
        "SELECT m.visible_from FROM memberships m JOIN accounts a ON a.id = m.account_id"
        " JOIN channels c ON c.id = m.channel_id WHERE a.phone = $1 AND c.title = 'Group'",
        phone,
    )
    return row["visible_from"]


async def test_an_account_let_in_again_between_two_connections_passes_over_nothing_for_the_others(
    world, run, group
):
    await run()
    await _shut_out_for_a_while(world, group)
    await run()
    assert await _sees_from(world, A) > 120
    await run("--account", B)
    rows = await world.fetch("SELECT state FROM archive_sets")
    assert [row["state"] for row in rows] == ["indexed", "indexed"]


async def test_an_account_let_in_again_in_the_middle_of_its_reading_passes_over_nothing_for_the_others(
    world, run, group
):
    await run()
    await world.admin.post_text(group, "something to read")
    reading = await world.admin.add_rule("updates.getChannelDifference", "delay", seconds=None)
    reader = world.workers.start("run", "--once", "--account", A, env=world.env())
    await world.until_hit(reading)
    await _shut_out_for_a_while(world, group)
    await world.admin.lift_rule(reading)
    assert await asyncio.to_thread(world.workers.wait, reader) == {"exit": 0}
    await run("--account", B)
    rows = await world.fetch("SELECT state FROM archive_sets")
    assert [row["state"] for row in rows] == ["indexed", "indexed"]


async def test_a_set_whose_messages_an_account_cannot_see_any_more_is_not_gone_and_left_to_another(
    world, run, group
):
    # The first one proves that the set is whole; the second one fetches it.
    asking = await world.admin.add_rule("channels.getMessages", "delay", seconds=None, nth=2)
    reader = world.workers.start("run", "--once", "--account", A, env=world.env())
    await world.until_hit(asking)
    await _shut_out_for_a_while(world, group)
    await world.admin.lift_rule(asking)
    assert await asyncio.to_thread(world.workers.wait, reader) == {"exit": 0}
    (row,) = await world.fetch("SELECT state, reason, attempts FROM archive_sets")
    assert (row["state"], row["attempts"]) == ("ready", 0)
    assert "does not see all of archive-1.zip" in row["reason"]
    await run("--account", B)
    rows = await world.fetch("SELECT state FROM archive_sets")
    assert [row["state"] for row in rows] == ["indexed", "indexed"]


async def test_a_wait_on_asking_what_is_seen_holds_up_no_other_source(world, run, group):
    await run()
    await world.post_archive(group, world.sources[0])
    await world.admin.add_rule("channels.getFullChannel", "error", code=420, text="FLOOD_WAIT_3600", count=0)
    await run()
    rows = await world.fetch(
        "SELECT state, posted.title FROM archive_sets JOIN channels posted ON posted.id = channel_id"
    )
    assert [(row["title"], row["state"]) for row in rows] == [("Group", "indexed"), ("First", "indexed")]


@contextlib.asynccontextmanager
async def _held_up(world, method: str, nth: int = 1):
    """A works, and stands still inside the block at this call."""
    held = await world.admin.add_rule(method, "delay", seconds=None, nth=nth)
    reader = world.workers.start("run", "--once", "--account", A, env=world.env())
    await world.until_hit(held)
    yield
    await world.admin.lift_rule(held)
    assert await asyncio.to_thread(world.workers.wait, reader) == {"exit": 0}


async def _states(world) -> list[str]:
    return [row["state"] for row in await world.fetch("SELECT state FROM archive_sets")]


@pytest.mark.parametrize("messages", [3, 120])
async def test_a_history_that_is_cleared_for_one_member_is_not_passed_over_for_the_others(
    world, run, group, messages
):
    await run()
    await world.admin.post_text(group, "something to read")
    async with _held_up(world, "updates.getChannelDifference"):
        await world.post_archive(group)
        await world.admin.fill_channel(group, messages)
        await world.admin.clear_history(group, A)
        await world.admin.post_text(group, "what A sees")
    assert await _sees_from(world, A) > messages
    assert await world.fetch("SELECT FROM source_files WHERE is_gone") == []
    await run("--account", B)
    assert await _states(world) == ["indexed", "indexed"]


async def test_a_history_that_is_cleared_between_two_pages_is_not_passed_over_for_the_others(
    world, run, group
):
    await run()
    await world.admin.fill_channel(group, 120)
    await world.post_archive(group)
    await world.admin.fill_channel(group, 5)
    # The destination is looked at first; then come two pages of the group.
    async with _held_up(world, "messages.getHistory", nth=3):
        await world.admin.clear_history(group, A)
        await world.admin.post_text(group, "what A sees")
    await run("--account", B)
    assert await _states(world) == ["indexed", "indexed"]


async def test_a_forum_whose_history_is_cleared_for_one_member_is_not_passed_over_for_the_others(world, run):
    forum, (castles, ships) = await world.open_forum("Castles", "Ships")
    await world.post_archive(forum, topic_id=castles)
    await run()
    await world.admin.post_text(forum, "something to read", topic_id=castles)
    async with _held_up(world, "messages.getForumTopics"):
        await world.post_archive(forum, topic_id=castles)
        await world.post_archive(forum, topic_id=ships)
        await world.admin.clear_history(forum, A)
        for topic in (castles, ships):
            await world.admin.post_text(forum, "what A sees", topic_id=topic)
    assert await world.fetch("SELECT FROM source_files WHERE is_gone") == []
    await run("--account", B)
    assert await _states(world) == ["indexed", "indexed", "indexed"]


async def test_a_forum_of_which_nothing_shows_any_more_is_not_passed_over_for_the_others(world, run):
    forum, (castles, ships) = await world.open_forum("Castles", "Ships")
    await world.post_archive(forum, topic_id=castles)
    await run()
    await world.post_archive(forum, topic_id=ships)
    async with _held_up(world, "updates.getChannelDifference"):
        await world.admin.clear_history(forum, A)
    await run("--account", B)
    assert await _states(world) == ["indexed", "indexed"]


async def test_gaps_in_a_group_cost_no_call_more(world, run, group):
    async def asked_in_a_run() -> int:
        before = len(await world.admin.calls("channels.getFullChannel"))
        await run()
        return len(await world.admin.calls("channels.getFullChannel")) - before

    await run()
    await world.admin.post_text(group, "something to read")
    usual = await asked_in_a_run()
    ids = (await world.admin.fill_channel(group, 230))["message_ids"]
    await world.admin.delete_messages(group, ids[::2])
    assert await asked_in_a_run() == usual
