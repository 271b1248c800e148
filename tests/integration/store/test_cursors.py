"""Who may move a cursor, and in which order the topics of a forum are read."""

from dataclasses import replace

import asyncpg
import pytest

from worker.domain.telegram import ChannelHead, Topic, Visibility
from worker.errors import FenceLostError
from worker.store import cursors, topic_cursors, visibility

# How long a busy machine takes for a test ends no wait and no claim.
pytestmark = pytest.mark.usefixtures("standing_fleet_time")
_WORLD = """
    INSERT INTO accounts (phone, state) VALUES ('+1', 'ready');
    INSERT INTO channels (telegram_id, title, kind, is_source) VALUES (1, 'Forum', 'forum', true);
    INSERT INTO memberships (account_id, channel_id) VALUES (1, 1);
    INSERT INTO peers (account_id, telegram_id, access_hash) VALUES (1, 1, 9);
"""
HEAD = ChannelHead(top_message=50, pts=50)


@pytest.fixture
async def raw(database_url):
    connection = await asyncpg.connect(database_url)
    await connection.execute(_WORLD)
    yield connection
    await connection.close()


@pytest.fixture
async def forum(database, raw):
    """It is being read by an account that sees all of it."""
    await visibility.note_visibility(database, 1, 1, Visibility(0, member_since=100))
    (readable,) = await cursors.readable_sources(database, 1)
    return await cursors.hold(database, 1, readable, HEAD, 60.0)


async def test_how_much_is_seen_is_unknown_until_it_was_asked_for_this_membership(database, raw):
    await raw.execute("UPDATE memberships SET visible_from = 0")
    (readable,) = await cursors.readable_sources(database, 1)
    assert readable.visible_from is None
    await visibility.note_visibility(database, 1, 1, Visibility(7, member_since=100))
    (readable,) = await cursors.readable_sources(database, 1)
    assert (readable.visible_from, readable.member_since) == (7, 100)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memberships SET member_since = 101",
        "UPDATE memberships SET member_since = NULL",
        "UPDATE memberships SET visible_from = 7",
        "UPDATE memberships SET visible_from = NULL",
    ],
)
async def test_a_reader_that_may_see_less_by_now_moves_no_cursor(database, raw, forum, change):
    await raw.execute(change)
    with pytest.raises(FenceLostError):
        async with database.transaction("test") as connection:
            await cursors.advance_cursor(connection, forum, 40, 40)
    with pytest.raises(FenceLostError):
        await cursors.finish(database, forum, 50)
    assert await raw.fetchval("SELECT last_message_id FROM scan_cursors") == 0


async def test_after_trouble_with_a_topic_the_next_scan_begins_with_the_others(database, forum):
    topics = [Topic(2, "Castles", 40), Topic(3, "Ships", 50)]
    castles, ships = await topic_cursors.keep_topics(database, forum, topics)
    await topic_cursors.read_others_first(database, castles)
    again = await topic_cursors.keep_topics(database, forum, topics)
    assert [topic.topic_id for topic in again] == [ships.topic_id, castles.topic_id]


@pytest.mark.parametrize("topics", [[], [Topic(1, "General", 50)]])
async def test_what_a_group_had_to_read_once_more_is_read_in_general_when_it_became_a_forum(
    database, raw, forum, topics
):
    await raw.execute("UPDATE scan_cursors SET last_message_id = 40, reread_at = 10, reread_to = 40")
    forum = replace(forum, last_message_id=40)
    (general,) = await topic_cursors.keep_topics(database, forum, topics)
    found = (general.topic_id, general.title, general.last_message_id, general.reread_at, general.reread_to)
    assert found == (1, "Forum / General", 40, 10, 40)
    assert await raw.fetchval("SELECT reread_at = reread_to FROM scan_cursors WHERE topic_id = 0")


async def test_general_reads_both_what_it_had_to_read_once_more_and_what_the_group_had(database, raw, forum):
    await raw.execute("UPDATE scan_cursors SET last_message_id = 40, reread_at = 10, reread_to = 40")
    await topic_cursors.keep_topics(database, forum, [])
    await raw.execute("UPDATE scan_cursors SET reread_at = 5, reread_to = 20 WHERE topic_id = 0")
    (general,) = await topic_cursors.keep_topics(database, forum, [])
    assert (general.reread_at, general.reread_to) == (5, 40)


async def test_a_topic_that_was_refused_is_read_again_when_it_moves_and_after_some_hours(
    database, raw, forum, advance_fleet_time
):
    castles = Topic(2, "Castles", 40)
    (topic,) = await topic_cursors.keep_topics(database, forum, [castles])
    await topic_cursors.settle_unreadable(database, topic, "400 TOPIC_ID_INVALID")
    assert await topic_cursors.keep_topics(database, forum, [castles]) == []
    (unreadable,) = await topic_cursors.unreadable_topics(database)
    assert (unreadable.title, unreadable.reason) == ("Castles", "400 TOPIC_ID_INVALID")

    moved = await topic_cursors.keep_topics(database, forum, [Topic(2, "Castles", 41)])
    assert [topic.last_message_id for topic in moved] == [0]
    await topic_cursors.settle_unreadable(database, moved[0], "400 TOPIC_ID_INVALID")
    await advance_fleet_time(7 * 3600)
    await raw.execute(
        "UPDATE scan_cursors SET held_until = fleet_now() + interval '1 minute' WHERE topic_id = 0"
    )
    assert len(await topic_cursors.keep_topics(database, forum, [])) == 1
