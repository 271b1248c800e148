"""What an account cannot see any more is not gone, and what it has not seen is left to those who can see it."""

import asyncio

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
