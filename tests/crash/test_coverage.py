"""Every failpoint of a run is reached by some scenario: one that never is could hide anything."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from failpoints import point_names
from hidden_volumes import hidden_volume
from lost_claim import LosesAReply
from postgres_place import over_a_line
from world import PHONES, open_world

ONE = ("--account", PHONES[0])
MIB = 1024 * 1024
# Not part of a run: setting up, and the switches of the command line.
OTHER_COMMANDS = (
    "db.accounts.add",
    "db.accounts.login",
    "db.accounts.state",
    "db.accounts.secret",
    "db.accounts.reseal",
    "db.accounts.enable",
    "db.accounts.disable",
    "db.accounts.delete",
    # No file here lies at another data centre.
    "db.accounts.key",
    "db.channels.",
    "db.upgrade",
    "db.downgrade",
    "db.pauses.",
    "db.packages.index_again",
    "db.requests.",
    "db.sets.retry",
    "db.sets.skip",
    "db.uploads.decide",
    # Only where Telegram refuses the connections of a host.
    "db.host_pauses.",
    "restored.",
)
# Reached when accounts, sources, messages or rows are lost, or work is told to wait.
LOSSES = (
    "db.cursors.postpone",
    "db.cursors.unreadable",
    "db.memberships.closed",
    "db.memberships.unseen",
    "db.missing.",
    "db.packages.adopt",
    "db.packages.seen_again",
    "db.packages.withdraw",
    "db.remains.",
    "db.removals.",
    "db.sets.decline",
    "db.sets.give_back_unheard",
    "db.sets.hand_back",
    "db.uploads.hand_over",
    "db.uploads.move",
    "db.uploads.replan",
    "db.uploads.rewrite",
    "db.uploads.unsent",
    "lock.account_release",
    "lock.end_holder",
)

_END_LOCK_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'archive-fleet locks%'"
    " AND datname = current_database()"
)


async def _lose_the_locks_for_a_moment(world, record: str) -> None:
    """A worker whose account another one asks for meanwhile loses its locks, and has them back in time."""
    await world.post_archive(world.sources[0])
    patient = {"WORKER_LEASE__LEASE_SECS": "30"}
    held = world.env(f"{record},stop=telegram.messages.SendMedia:before:1", **patient)
    owner = world.workers.start("run", "--once", *ONE, env=held)
    assert await asyncio.to_thread(world.workers.until_stopped, owner) == {"stopped": True}
    other = world.workers.start("run", "--once", *ONE, env=world.env(record, **patient))
    assert await asyncio.to_thread(world.workers.wait, other) == {"exit": 0}
    await world.fetch(_END_LOCK_SESSIONS)
    os.kill(owner, signal.SIGCONT)
    assert await asyncio.to_thread(world.workers.wait, owner) == {"exit": 0}, world.workers.logs[
        -2
    ].read_text()


async def _run(world, record: str, *, kill: str = "", exit_code: int = 0) -> None:
    """Let the one account work; it ends well, or at the place where it is to be killed."""
    faults = f"{record},kill={kill}" if kill else record
    ended = await world.run("run", "--once", *ONE, faults=faults)
    assert ended == ({"signal": 9} if kill else {"exit": exit_code}), world.workers.logs[-1].read_text()


async def _archives_and_a_crash(world, record: str) -> None:
    path = await world.post_archive(world.sources[0])
    await world.admin.post_document(world.sources[1], path, "same bytes.zip")
    await _run(world, record)
    await world.post_archive(world.sources[0])
    await _run(world, record, kill="telegram.messages.SendMedia:after:1")
    await _run(world, record)
    await world.until_buried()
    assert await world.run("recover", faults=record) == {"exit": 0}
    assert await world.run("run", "--once", faults=record) == {"exit": 0}, (
        "with both accounts, which are shared"
    )


async def _refused_parts(world, record: str) -> None:
    for code, text in ((420, "FLOOD_WAIT_1"), (400, "FILE_PART_INVALID")):
        await world.post_archive(world.sources[0])
        await world.admin.add_rule("upload.saveFilePart", "error", code=code, text=text)
        await _run(world, record)
    await world.drain(*ONE)
    await world.check_invariants()


async def _a_source_that_is_gone(world, record: str) -> None:
    source = world.sources[0]
    await world.post_archive(source)
    await _run(world, record, kill="db.uploads.intent:after:1")
    newest = [m["id"] for m in await world.admin.messages(source)][-1]
    await world.admin.delete_messages(source, [newest])
    await _run(world, record)


async def _a_stub_that_cannot_be_listed(world, record: str) -> None:
    """What is known of its files is wrong."""
    await world.post_archive(world.sources[0])
    await _run(world, record, kill="db.packages.stub:after:1")
    await world.fetch("UPDATE package_originals SET size = size + 1")
    await _run(world, record)


async def _a_part_that_is_gone(world, record: str) -> None:
    """Before its set was proven, beside a file that was only written down."""
    source, folder = world.sources[0], world.folder
    (folder / "report.r12").write_bytes(b"not an archive")
    first, *_ = await world.post_files(source, [*world.make_volumes(), folder / "report.r12"])
    stray = folder / f"archive-{world.posted + 1}.z01"
    stray.write_bytes(b"left of something else")
    await world.post_files(source, [stray])
    await world.post_archive(source)
    await _run(world, record, kill="db.proofs.next:after:2")
    await world.admin.delete_messages(source, [first])
    await world.fetch("UPDATE source_files SET family = NULL WHERE file_name = 'report.r12'")
    await world.until_buried()
    await _run(world, record)


async def _what_strangers_do(world, record: str) -> None:
    """A damaged part that comes again, volumes that hide what they are, a swapped file, a gap in the updates."""
    source, folder = world.sources[0], world.folder
    *head, last = world.make_volumes()
    (folder / "damaged").mkdir()
    damaged = folder / "damaged" / last.name
    damaged.write_bytes(bytes(last.stat().st_size))
    hidden = [hidden_volume(folder / f"hidden.part{number}.rar", b"s" * 16) for number in (1, 2)]
    await world.post_files(source, [*head, damaged, last, *hidden])
    swapped = await world.post_archive(source)
    world.settings["WORKER_FLEET__UNPROVEN_AFTER_SECS"] = "0"
    await world.until_buried()
    await _run(world, record, kill="db.proofs.next:before:2")
    await world.fetch("UPDATE source_files SET document_id = 1 WHERE file_name = $1", swapped.name)
    await world.fetch("UPDATE source_files SET is_gone = false WHERE is_gone")
    await world.fetch("UPDATE scan_cursors SET reread_to = last_message_id")
    await world.until_buried()
    await _run(world, record)


async def _what_is_not_allowed(world, record: str) -> None:
    """It is written down; bytes are kept for the next attempt."""
    await world.drain(*ONE)
    await world.post_archive(world.sources[0])
    await _run(world, record, kill="workspace.open:after:1")
    await world.fetch("UPDATE packages SET metadata = 'pending', metadata_not_before = fleet_now()")
    await world.admin.add_rule("channels.getMessages", "error", code=400, text="CHANNEL_PRIVATE", count=0)
    await _run(world, record)
    await world.admin.clear_rules()
    await world.admin.add_rule("messages.sendMedia", "error", code=403, text="CHAT_WRITE_FORBIDDEN")
    await _run(world, record)


async def _other_kinds_of_sources(world, record: str) -> None:
    """And one that the account was removed from."""
    forum, (topic,) = await world.open_forum("Castles")
    await world.post_archive(forum, topic_id=topic)
    await world.post_archive(await world.open_hidden_group(), world.sources[0])
    await _run(world, record)
    await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.getHistory", "error", code=400, text="CHANNEL_PRIVATE", count=0)
    await _run(world, record)


async def _the_end_of_a_session(world, record: str) -> None:
    """In the middle of a proof, of which it is no try."""
    await world.admin.clear_rules()
    await world.post_files(world.sources[0], world.make_volumes())
    await world.admin.add_rule("channels.getMessages", "error", code=401, text="SESSION_REVOKED")
    await _run(world, record, exit_code=1)


@pytest.mark.timeout(400)
async def test_every_failpoint_of_a_run_is_reached(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        record = f"record={tmp_path / 'record'}"
        await world.open_operations_chat()
        await _archives_and_a_crash(world, record)
        await _refused_parts(world, record)
        await _a_source_that_is_gone(world, record)
        await _a_stub_that_cannot_be_listed(world, record)
        await _a_part_that_is_gone(world, record)
        await _what_strangers_do(world, record)
        await _what_is_not_allowed(world, record)
        await _lose_the_locks_for_a_moment(world, record)
        await _other_kinds_of_sources(world, record)
        await _the_end_of_a_session(world, record)
        expected = {point for point in point_names() if not point.startswith((*OTHER_COMMANDS, *LOSSES))}
        assert expected - _reached(tmp_path) == set()


def _reached(folder: Path) -> set[str]:
    return {place.rsplit(":", 1)[0] for place in (folder / "record").read_text().split()}


@pytest.mark.long
async def test_every_failpoint_of_losses_is_reached(tmp_path, database_url):
    async with open_world(tmp_path, database_url) as world:
        record = f"record={tmp_path / 'record'}"
        world.settings |= {
            "WORKER_TRANSFER__STANDARD_LIMIT_MIB": "1",
            "WORKER_TRANSFER__PREMIUM_LIMIT_MIB": "2",
            "WORKER_TELEGRAM__CALL_TIMEOUT_SECS": "2",
        }
        await _loss_of_an_answer(world, record, database_url)
        await _an_owner_that_sleeps(world, record)
        await _lapse_of_premium(world, record)
        await _loss_of_a_source(world, record)
        await _loss_of_an_account(world, record)
        await _deletion_by_hand(world, record)
        await _withdrawal_by_mistake(world, record)
        await _remains_that_no_account_sees(world, record)
        await _an_upload_given_up_unseen(world, record)
        await _a_person_vouches_for_what_nobody_sees(world, record)
        await _an_upload_given_up_by_one_who_is_shut_out(world, record)
        await _loss_of_the_database(world, record)
        await _flood(world, record)
        await _loss_of_sight(world, record)
        await _loss_of_a_topic(world, record)
        expected = {point for point in point_names() if point.startswith(LOSSES)}
        assert expected - _reached(tmp_path) == set()


async def _begin(world, record: str, place: str, **options) -> None:
    """An archive whose upload is killed there."""
    await world.post_archive(world.sources[0], **options)
    assert await world.run("run", "--once", *ONE, faults=f"{record},kill={place}") == {"signal": 9}


async def _an_owner_that_sleeps(world, record: str) -> None:
    """Its lease is over, and its locks are in the way."""
    await world.post_archive(world.sources[0])
    held = world.env(f"{record},stop=telegram.messages.SendMedia:before:1")
    owner = world.workers.start("run", "--once", *ONE, env=held)
    assert await asyncio.to_thread(world.workers.until_stopped, owner) == {"stopped": True}
    await world.until_buried()
    assert await world.run("run", "--once", *ONE, faults=record) == {"exit": 0}
    os.kill(owner, signal.SIGKILL)
    await asyncio.to_thread(world.workers.wait, owner)


async def _lapse_of_premium(world, record: str) -> None:
    await world.admin.set_premium(PHONES[0], True)
    await _begin(world, record, "db.uploads.sent:after:1", size=9 * MIB // 2)
    await world.admin.set_premium(PHONES[0], False)
    await world.run("run", "--once", *ONE, faults=record)


async def _loss_of_a_source(world, record: str) -> None:
    await _begin(world, record, "db.uploads.intent:after:1")
    posted = [m["id"] for m in await world.admin.messages(world.sources[0])][-1]
    copy = world.folder / f"archive-{world.posted}.zip"
    await world.admin.post_document(world.sources[1], copy, "copy.zip")
    await world.run("run", "--once", "--account", PHONES[1], faults=record)
    await world.admin.delete_messages(world.sources[0], [posted])
    for _ in range(2):
        await world.run("run", "--once", *ONE, faults=record)

    await _begin(world, record, "db.uploads.sent:after:1", size=5 * MIB // 2)
    posted = [m["id"] for m in await world.admin.messages(world.sources[0])][-1]
    await world.admin.delete_messages(world.sources[0], [posted])
    await world.run("run", "--once", *ONE, faults=record)
    # As if the process had died between the deletion and its record.
    await world.fetch("UPDATE upload_parts SET deleted_at = NULL")
    await world.run("recover", *ONE, faults=record)


async def _loss_of_an_account(world, record: str) -> None:
    await _begin(world, record, "db.uploads.intent:after:1")
    await world.admin.kick(world.destination, PHONES[0])
    await world.run("run", "--once", *ONE, faults=record)
    await world.run("recover", "--take-over", PHONES[0], faults=record)
    await world.admin.join(world.destination, PHONES[0], admin=True)
    await world.drain(*ONE)


async def _deletion_by_hand(world, record: str) -> None:
    path = await world.post_archive(world.sources[0])
    await world.admin.post_document(world.sources[1], path, "same bytes.zip")
    await world.drain(*ONE)
    last = [m["id"] for m in await world.admin.messages(world.destination)][-1]
    await world.admin.delete_messages(world.destination, [last])
    await world.run("recover", *ONE, faults=record)
    await world.run("run", "--once", *ONE, faults=record)
    for argv in (["recover"], ["recover", "--accept-missing"]):
        await world.post_archive(world.sources[0], size=5 * MIB // 2)
        await world.drain(*ONE)
        last = [m["id"] for m in await world.admin.messages(world.destination)][-1]
        await world.admin.delete_messages(world.destination, [last])
        await world.run(*argv, *ONE, faults=record)


async def _withdrawal_by_mistake(world, record: str) -> None:
    """Every message of the package stands."""
    await world.post_archive(world.sources[0])
    await world.drain(*ONE)
    last = "(SELECT max(id) FROM packages)"
    await world.fetch(f"UPDATE archive_sets SET state = 'ready', package_id = NULL WHERE package_id = {last}")
    await world.fetch(f"UPDATE packages SET state = 'withdrawn', withdrawn_at = now() WHERE id = {last}")
    settings = world.env(record, WORKER_FLEET__REPUBLISH_DELETED="true")
    pid = world.workers.start("run", "--once", *ONE, env=settings)
    assert await asyncio.to_thread(world.workers.wait, pid) == {"exit": 0}


async def _remains_that_no_account_sees(world, record: str) -> None:
    """A person waits no longer for what is left of a package."""
    await world.post_archive(world.sources[0], size=5 * MIB // 2)
    await world.drain(*ONE)
    last = [m["id"] for m in await world.admin.messages(world.destination)][-1]
    await world.admin.delete_messages(world.destination, [last])
    await world.admin.add_rule("channels.deleteMessages", "error", code=403, text="FORBIDDEN", count=0)
    world.settings["WORKER_FLEET__REPUBLISH_DELETED"] = "true"
    await world.run("recover", *ONE)
    await world.admin.clear_rules()
    ((waiting,),) = await world.fetch("SELECT max(id) FROM archive_sets WHERE state = 'ready'")
    await world.fetch("UPDATE accounts SET state = 'disabled'")
    ended = await world.run("recover", "--give-up", str(waiting), faults=record)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    await world.fetch("UPDATE accounts SET state = 'ready'")
    del world.settings["WORKER_FLEET__REPUBLISH_DELETED"]
    await world.drain(*ONE)


async def _an_upload_given_up_unseen(world, record: str) -> None:
    """Its part has arrived unheard of, and nobody could look for it."""
    await _begin(world, record, "telegram.messages.SendMedia:after:1")
    await world.until_buried()
    await world.fetch(
        "UPDATE uploads SET state = 'abandoned', reason = 'given up', ended_at = fleet_now() WHERE state = 'open'"
    )
    await world.run("run", "--once", *ONE, faults=record)
    await world.drain(*ONE)


async def _a_person_vouches_for_what_nobody_sees(world, record: str) -> None:
    await _begin(world, record, "telegram.messages.SendMedia:after:1")
    await world.until_buried()
    ((waiting,),) = await world.fetch(
        "UPDATE uploads SET state = 'abandoned', reason = 'given up', ended_at = fleet_now() WHERE state = 'open'"
        " RETURNING set_id"
    )
    await world.fetch("UPDATE accounts SET state = 'disabled'")
    ended = await world.run("recover", "--give-up", str(waiting), faults=record)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    await world.fetch("UPDATE accounts SET state = 'ready'")
    await world.drain(*ONE)


async def _an_upload_given_up_by_one_who_is_shut_out(world, record: str) -> None:
    """Another account sees what it has sent."""
    assert await world.run("run", "--once", "--account", PHONES[1]) == {"exit": 0}
    await _begin(world, record, "db.uploads.intent:after:1")
    await world.admin.kick(world.destination, PHONES[0])
    ((begun,),) = await world.fetch("SELECT set_id FROM uploads WHERE state = 'open'")
    ended = await world.run("recover", "--give-up", str(begun), *ONE, faults=record)
    assert ended == {"exit": 0}, world.workers.logs[-1].read_text()
    await world.admin.join(world.destination, PHONES[0], admin=True)
    await world.drain()


async def _loss_of_the_database(world, record: str) -> None:
    for table in (
        "previews",
        "package_files",
        "package_originals",
        "package_parts",
        "upload_parts",
        "uploads",
    ):
        await world.fetch(f"DELETE FROM {table}")
    await world.fetch("UPDATE archive_sets SET state = 'ready', package_id = NULL, reason = NULL")
    await world.fetch("DELETE FROM packages")
    await world.run("recover", *ONE, faults=record)


async def _flood(world, record: str) -> None:
    await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.sendMedia", "error", code=420, text="FLOOD_WAIT_3600")
    await world.run("run", "--once", *ONE, faults=record)


async def _loss_of_sight(world, record: str) -> None:
    """The account is shut out of a group and let in again while it reads a page."""
    group = (await world.admin.create_channel("Group", broadcast=False, members=[PHONES[0]]))["channel_id"]
    await world.fetch(
        "INSERT INTO channels (telegram_id, title, kind, is_source) VALUES ($1, 'Group', 'supergroup', true)",
        group,
    )
    await world.admin.post_text(group, "something to read")
    pages = await world.admin.add_rule("messages.getHistory", "delay", seconds=None, count=0)
    reader = world.workers.start("run", "--once", *ONE, env=world.env(record))
    # One of the group, and one of the destination.
    await world.until_hit(pages, times=2)
    await world.admin.kick(group, PHONES[0])
    await world.admin.join(group, PHONES[0])
    await world.admin.lift_rule(pages)
    await asyncio.to_thread(world.workers.wait, reader)


async def _loss_of_a_topic(world, record: str) -> None:
    forum, (castles, _) = await world.open_forum("Castles", "Ships")
    for topic in (castles, None):
        await world.admin.post_text(forum, "hello", topic_id=topic)
    await world.run("run", "--once", *ONE, faults=f"{record},kill=db.cursors.topics:after:1")
    await world.until_buried()
    await world.admin.add_rule("messages.getReplies", "error", code=500, text="INTERNAL", count=0)
    await world.run("run", "--once", *ONE, faults=record)
    await world.admin.clear_rules()
    await world.admin.delete_topic(forum, castles)
    await world.run("run", "--once", *ONE, faults=record)


async def _loss_of_an_answer(world, record: str, database_url: str) -> None:
    line = LosesAReply(database_url)
    await line.mend()
    await world.post_archive(world.sources[0])
    env = world.env(record, WORKER_DATABASE_URL=over_a_line(database_url, line.port))
    pid = world.workers.start("run", "--once", *ONE, env=env)
    await asyncio.to_thread(world.workers.wait, pid)
    await line.cut()
