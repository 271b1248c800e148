"""What an account reads of its sources, how far, and what it does not read again."""

import asyncio
import os
import signal

from hang_guard import until
from world import PHONES

ADA, GRACE = PHONES


async def _methods(world, phone=ADA, *, after=0):
    calls = await world.admin.calls(after=after)
    return [call["method"] for call in calls if call["phone"] == phone.lstrip("+")]


async def _last_call(world):
    return max((call["id"] for call in await world.admin.calls()), default=0)


async def _files(world):
    rows = await world.fetch(
        "SELECT f.file_name, f.topic_id, s.state, f.is_gone FROM source_files f"
        " LEFT JOIN archive_sets s ON s.id = f.set_id ORDER BY f.id"
    )
    return [tuple(row) for row in rows]


def _says(world, words):
    async def answer():
        return words in world.workers.logs[-1].read_text()

    return answer


async def test_each_topic_of_a_forum_is_a_source_of_its_own_and_general_counts_as_one(world, run):
    forum, (castles, ships) = await world.open_forum("Castles", "Ships")
    for topic, number in ((None, 1), (castles, 2), (ships, 3)):
        await world.post_archive(forum, topic_id=topic)
        assert number == world.posted
    await run()
    await world.check_invariants()
    assert [(name, topic) for name, topic, *_ in await _files(world)] == [
        ("archive-1.zip", 1),
        ("archive-2.zip", castles),
        ("archive-3.zip", ships),
    ]
    titles = await world.fetch("SELECT topic_title FROM scan_cursors WHERE topic_id > 0 ORDER BY topic_id")
    assert [row["topic_title"] for row in titles] == ["General", "Castles", "Ships"]


async def test_only_the_topic_that_moved_is_paged(world, run):
    forum, (castles, ships) = await world.open_forum("Castles", "Ships")
    await world.post_archive(forum, topic_id=castles)
    await world.post_archive(forum, topic_id=ships)
    await run()
    before = await _last_call(world)
    await world.post_archive(forum, topic_id=ships)
    await run()
    methods = await _methods(world, after=before)
    assert methods.count("messages.getReplies") == 1
    assert methods.count("messages.getForumTopics") == 1
    await world.check_invariants()


async def test_a_set_spread_over_a_forum_topic_with_a_late_part_is_completed(world, run):
    forum, (castles,) = await world.open_forum("Castles")
    first, second, third = world.make_volumes()
    await world.post_files(forum, [first, second], topic_id=castles)
    await run()
    await world.post_files(forum, [third], topic_id=castles)
    await run()
    await world.check_invariants()


async def test_a_channel_in_which_nothing_moved_is_not_paged(world, run):
    await world.post_archive(world.sources[0])
    await run()
    before = await _last_call(world)
    await run()
    methods = await _methods(world, after=before)
    assert methods.count("messages.getHistory") == 1, "at its start a worker looks at the destination"
    assert "updates.getChannelDifference" not in methods


async def test_a_deleted_file_that_nobody_fetched_yet_is_skipped_with_that_reason(world, run, sets):
    first, second, third = world.make_volumes()
    ids = await world.post_files(world.sources[0], [first, third])
    await run()
    # Far enough back that the pages read again do not reach it.
    for number in range(120):
        await world.admin.post_text(world.sources[0], f"message {number}")
    await run()
    await world.admin.delete_messages(world.sources[0], [ids[0]])
    await world.post_files(world.sources[0], [second])
    await run()
    assert (await sets())["volumes-1.zip"] == ("collecting", "waits for part 1 of 3: volumes-1.zip.001", 2)
    await world.admin.delete_messages(world.sources[0], [ids[1]])
    await run()
    state, reason, count = (await sets())["volumes-1.zip"]
    assert (state, reason, count) == ("collecting", "waits for part 1 of 2: volumes-1.zip.001", 1)


async def test_an_edit_far_below_the_cursor_is_noticed(world, run, sets):
    source = world.sources[0]
    first, second, third = world.make_volumes()
    (note := world.folder / "note.txt").write_text("the second part follows")
    (edited,) = await world.post_files(source, [note])
    await world.post_files(source, [first, third])
    # Far enough back that the pages read again do not reach it.
    for number in range(120):
        await world.admin.post_text(source, f"message {number}")
    await run()
    assert (await sets())["volumes-1.zip"] == ("collecting", "waits for part 2 of 3: volumes-1.zip.002", 2)
    elsewhere = (await world.admin.create_channel("Drafts"))["channel_id"]
    world.contents.keep(second)
    draft = await world.admin.post_document(elsewhere, second, second.name)
    await world.admin.replace_document(source, edited, draft["document_id"])
    await run()
    assert (await sets())["volumes-1.zip"][0] == "indexed"
    await world.check_invariants()


async def test_a_message_that_appears_below_the_cursor_is_found_all_the_same(world, run):
    source = world.sources[0]
    await world.admin.post_text(source, "hello")
    await run()
    await world.post_archive(source)
    # As if it had not been there yet when the messages around it were read, nor in the channel's changes.
    moved = await world.fetch(
        "UPDATE scan_cursors SET last_message_id = last_message_id + 1, pts = pts + 1 FROM channels c"
        " WHERE c.id = channel_id AND c.telegram_id = $1 RETURNING last_message_id",
        source,
    )
    assert moved[0]["last_message_id"] == max(message["id"] for message in await world.admin.messages(source))
    await world.admin.post_text(source, "bye")
    await run()
    assert [name for name, *_ in await _files(world)] == ["archive-1.zip"]
    await world.check_invariants()


async def test_an_account_without_the_whole_history_reads_with_a_cursor_of_its_own(world, run):
    made = await world.admin.create_channel("Group", admins=[ADA], broadcast=False, hidden_history=True)
    group = made["channel_id"]
    await world.post_archive(group)
    await world.admin.join(group, GRACE)
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Group', 'supergroup', true)",
        group,
    )
    world.sources.append(group)
    await world.post_archive(group)
    await run("--account", GRACE)
    assert [name for name, *_ in await _files(world)] == ["archive-2.zip"]
    await run("--account", ADA)
    await world.check_invariants()
    cursors = await world.fetch(
        "SELECT cu.account_id IS NULL AS shared FROM scan_cursors cu JOIN channels c ON c.id = cu.channel_id"
        " WHERE c.telegram_id = $1 ORDER BY cu.id",
        group,
    )
    assert [row["shared"] for row in cursors] == [False, True]


async def test_two_accounts_share_a_channel_without_reading_it_twice(world, run):
    for _ in range(3):
        await world.post_archive(world.sources[0])
    await run("--account", ADA, "--account", GRACE)
    await world.drain()
    await world.check_invariants()
    seen = await world.fetch(
        "SELECT sum(messages_seen) AS n FROM scan_cursors WHERE channel_id IN (SELECT channel_id FROM source_files)"
    )
    assert seen[0]["n"] == len(await world.admin.messages(world.sources[0]))


async def test_a_lost_membership_is_noted_and_comes_back_with_the_chat_list(world, run):
    first, second = world.sources
    await run()
    await world.admin.kick(first, ADA)
    await world.post_archive(second)
    await run()
    query = "SELECT m.can_read FROM memberships m JOIN channels c ON c.id = m.channel_id JOIN accounts a ON a.id = m.account_id WHERE c.telegram_id = $1 AND a.phone = $2"
    assert [row["can_read"] for row in await world.fetch(query, first, ADA)] == [False]
    await world.admin.join(first, ADA)
    await world.post_archive(first)
    await run()
    assert [row["can_read"] for row in await world.fetch(query, first, ADA)] == [True]
    await world.check_invariants()


async def test_p10_a_posting_of_known_documents_is_a_duplicate_without_a_download(world, run):
    first, second = world.sources
    await world.post_archive(first)
    await run()
    (source,) = [m for m in await world.admin.messages(first) if m["document_id"]]
    (published,) = [m for m in await world.admin.messages(world.destination) if m["document_id"]]
    await world.admin.repost(second, source["document_id"])
    await world.admin.repost(second, published["document_id"])
    await run()
    rows = await world.fetch(
        "SELECT s.state, s.package_id, f.sha256 FROM archive_sets s JOIN source_files f ON f.set_id = s.id"
        " WHERE s.id > 1"
    )
    assert [tuple(row) for row in rows] == [("duplicate", 1, None), ("duplicate", 1, None)]


async def test_an_archive_is_published_as_soon_as_it_is_posted(world):
    # By its cycles alone the fleet would find it ten minutes later.
    pid = world.workers.start("run", "--account", ADA, env=world.env(WORKER_FLEET__CYCLE_SECS="600"))
    try:
        await world.post_archive(world.sources[0])
        await world.until("SELECT count(*) = 1 FROM packages")
        await world.post_archive(world.sources[0])
        await world.until("SELECT count(*) = 2 FROM packages")
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(world.workers.wait, pid)


async def test_a_scan_that_failed_is_repeated_soon_and_not_a_whole_cycle_later(world):
    pid = world.workers.start("run", "--account", ADA, env=world.env(WORKER_FLEET__CYCLE_SECS="600"))
    try:
        await world.post_archive(world.sources[0])
        await world.until("SELECT count(*) = 1 FROM packages")
        rule = await world.admin.add_rule(
            "messages.getHistory", "error", code=400, text="PEER_ID_INVALID", count=0
        )
        await world.post_archive(world.sources[0])
        await until(_says(world, '"scan.failed"'))
        await world.admin.lift_rule(rule)
        await world.until("SELECT count(*) = 2 FROM packages")
    finally:
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(world.workers.wait, pid)


async def test_a_channel_that_telegram_refuses_to_tell_of_is_not_taken_for_left(world, run):
    await run()
    rule = await world.admin.add_rule(
        "messages.getPeerDialogs", "error", code=400, text="PEER_ID_INVALID", count=0
    )
    await world.post_archive(world.sources[0])
    await run()
    assert all(row["can_read"] for row in await world.fetch("SELECT can_read FROM memberships"))
    await world.admin.lift_rule(rule)
    await run()
    await world.check_invariants()


async def test_lists_longer_than_a_page_are_read_to_their_end(world, run):
    forum, topics = await world.open_forum(*(f"Topic {number}" for number in range(130)))
    await world.post_archive(forum, topic_id=topics[0])
    await world.post_archive(forum, topic_id=topics[-1])
    for number in range(120):
        await world.admin.create_channel(f"Channel {number}", members=[ADA])
    await run()
    await world.check_invariants()
    seen = await world.fetch(
        "SELECT count(*) AS n FROM memberships m JOIN accounts a ON a.id = m.account_id WHERE a.phone = $1",
        ADA,
    )
    assert seen[0]["n"] == 124
    titles = await world.fetch("SELECT count(*) AS n FROM scan_cursors WHERE topic_id > 0")
    assert titles[0]["n"] == 131
    before = await _last_call(world)
    await world.post_archive(forum, topic_id=topics[3])
    await run()
    assert (await _methods(world, after=before)).count("messages.getForumTopics") == 1


async def test_a_set_is_left_to_an_account_that_sees_its_messages(world, run):
    made = await world.admin.create_channel("Group", admins=[ADA], broadcast=False, hidden_history=True)
    group = made["channel_id"]
    await world.post_archive(group)
    await world.admin.join(group, GRACE)
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Group', 'supergroup', true)",
        group,
    )
    world.sources.append(group)
    await run("--account", ADA, faults="kill=db.proofs.settle:after:1", ends={"signal": 9})
    await world.until_buried()
    await run("--account", GRACE)
    assert [row["state"] for row in await world.fetch("SELECT state FROM archive_sets")] == ["ready"]
    await run("--account", ADA)
    await world.check_invariants()


async def test_a_topic_that_cannot_be_read_any_more_holds_up_no_other_and_says_why(world, run):
    forum, (castles, ships) = await world.open_forum("Castles", "Ships")
    await world.post_archive(forum, topic_id=castles)
    await world.post_archive(forum, topic_id=ships)
    # Castles has gone between the list of topics and its pages.
    await run(faults="kill=db.cursors.topics:after:1", ends={"signal": 9})
    await world.admin.delete_topic(forum, castles)
    await world.until_buried()
    await run()
    assert [(name, topic) for name, topic, *_ in await _files(world)] == [("archive-2.zip", ships)]
    (topic,) = await world.fetch(
        "SELECT unreadable, last_message_id FROM scan_cursors WHERE topic_id = $1", castles
    )
    assert "TOPIC_ID_INVALID" in topic["unreadable"]
    assert await world.run("status", "--json") == {"exit": 0}
    assert "Castles in Forum" in world.workers.logs[-1].read_text()


async def test_a7_what_was_not_read_of_a_topic_is_read_with_the_group_that_is_no_forum_any_more(world, run):
    forum, (castles, ships) = await world.open_forum("Castles", "Ships")
    await world.post_archive(forum, topic_id=castles)
    await world.post_archive(forum, topic_id=ships)
    refused = await world.admin.add_rule(
        "messages.getReplies", "error", code=400, text="TOPIC_ID_INVALID", count=0
    )
    await run()
    assert await _files(world) == []
    await world.admin.lift_rule(refused)
    await world.admin.set_forum(forum, False)
    await run()
    assert [name for name, *_ in await _files(world)] == ["archive-1.zip", "archive-2.zip"]
    await world.check_invariants()


async def test_w2_a_page_of_the_longest_messages_of_one_letter_stops_no_source(world, run):
    for _ in range(101):
        await world.admin.post_text(world.sources[0], "\u3042" * 4096)
    await world.post_archive(world.sources[0])
    await run()
    await world.check_invariants()
