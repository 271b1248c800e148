"""The operations chat: one message per account that follows its work, and gives way to a summary."""

import asyncio
import itertools

import pytest
from world import PHONES, open_world

ONE_ACCOUNT = ("--account", PHONES[0])
WRITES = ("messages.sendMessage", "messages.editMessage", "channels.deleteMessages")


@pytest.fixture
async def world(tmp_path, database_url):
    async with open_world(tmp_path, database_url, calm=True) as opened:
        yield opened


@pytest.fixture
async def chat(world):
    """Made after the accounts were logged in: they have to look for it."""
    return await world.open_operations_chat()


async def _run(world, chat, *arguments, faults="", **settings):
    more = {f"WORKER_{name}": str(value) for name, value in settings.items()}
    env = world.env(faults, **{**more, "WORKER_OPERATIONS__CHAT": str(chat)})
    pid = world.workers.start("run", "--once", *arguments, env=env)
    return await asyncio.to_thread(world.workers.wait, pid), world.workers.logs[-1].read_text()


async def _writes(world):
    calls = [call for method in WRITES for call in await world.admin.calls(method)]
    return sorted(calls, key=lambda call: call["at"])


async def _standing(world, chat):
    return [
        m
        for m in await world.admin.messages(chat)
        if not m["deleted"] and m["kind"] != "service" and m["text"]
    ]


async def test_one_message_follows_the_work_and_the_summary_replaces_it_at_the_chats_pace(world, chat):
    await world.post_archive(world.sources[0], size=3_000_000)
    await world.admin.set_shape(mbps=8)
    ended, log = await _run(
        world,
        chat,
        *ONE_ACCOUNT,
        RATE_LIMITS__PROFILE="telegram",
        RATE_LIMITS__GROUP_CHAT_PER_MIN=60,
        RATE_LIMITS__INTER_JOB_DELAY_MS=0,
        RATE_LIMITS__INTER_BATCH_DELAY_MS=0,
    )
    assert ended == {"exit": 0}, log
    writes = await _writes(world)
    kinds = [call["method"] for call in writes]
    assert kinds[0] == "messages.sendMessage"
    assert kinds[-2:] == ["messages.sendMessage", "channels.deleteMessages"], "send first, then delete"
    assert set(kinds[1:-2]) == {"messages.editMessage"}
    assert all(call["ok"] for call in writes), "no edit left its message as it was"
    gaps = [later["at"] - earlier["at"] for earlier, later in itertools.pairwise(writes)]
    # One second from start to start, shown on a manual clock (O8); a busy machine brings one of them late to the server.
    assert min(gaps) > 0.5
    summary = await _standing(world, chat)
    assert [message["text"].split(" after ")[0] for message in summary] == ["■ Ada (+1•••••••01): finished"]
    assert summary[0]["text"].endswith("so far: 1 published")


async def test_an_account_with_nothing_to_do_says_nothing(world, chat):
    ended, log = await _run(world, chat, *ONE_ACCOUNT)
    assert ended == {"exit": 0}, log
    assert await _writes(world) == []


async def test_every_account_has_a_message_of_its_own(world, chat):
    for source in world.sources:
        for _ in range(2):
            await world.post_archive(source)
    ended, log = await _run(world, chat, FLEET__SETS_IN_FLIGHT=1)
    assert ended == {"exit": 0}, log
    said = await _standing(world, chat)
    assert len(said) == len({message["phone"] for message in said}) >= 1
    assert all(message["text"].startswith("■ Ada") for message in said)


async def test_a_chat_that_refuses_stops_no_work_and_is_complained_of_once(world, chat):
    for _ in range(3):
        await world.post_archive(world.sources[0])
    await world.admin.add_rule(
        "messages.sendMessage", "error", code=403, text="CHAT_WRITE_FORBIDDEN", count=0
    )
    ended, log = await _run(world, chat, *ONE_ACCOUNT)
    assert ended == {"exit": 0}, log
    assert log.count("operations.not_writable") == 1
    assert len(await _writes(world)) == 1
    await world.check_invariants()


async def test_a_chat_that_the_account_is_not_in_stops_no_work(world):
    await world.post_archive(world.sources[0])
    ended, log = await _run(world, 4711, *ONE_ACCOUNT)
    assert ended == {"exit": 0}, log
    assert log.count("operations.not_writable") == 1
    await world.check_invariants()


async def test_the_destination_is_never_used_as_the_operations_chat(world):
    await world.post_archive(world.sources[0])
    ended, log = await _run(world, world.destination, *ONE_ACCOUNT)
    assert ended == {"exit": 0}, log
    assert "choose a chat of its own" in log
    assert await _writes(world) == []


async def test_a_flood_of_reports_holds_up_no_archive(world, chat):
    for _ in range(3):
        await world.post_archive(world.sources[0])
    await world.admin.add_rule("messages.sendMessage", "error", code=420, text="FLOOD_WAIT_300", count=0)
    ended, log = await _run(world, chat, *ONE_ACCOUNT)
    assert ended == {"exit": 0}, log
    assert len(await _writes(world)) == 1
    await world.check_invariants()


async def test_a_set_that_is_given_up_is_a_message_of_its_own(world, chat):
    path = await world.post_archive(world.sources[0])
    # Its headers can be read, and then its bytes cannot.
    killed = await world.run("run", "--once", *ONE_ACCOUNT, faults="kill=workspace.open:before:1")
    assert killed == {"signal": 9}
    await world.admin.add_rule("upload.getFile", "error", code=400, text="FILE_ID_INVALID", count=0)
    ended, log = await _run(world, chat, *ONE_ACCOUNT, FLEET__MAX_ATTEMPTS=1)
    assert ended == {"exit": 0}, log
    told = [message["text"] for message in await _standing(world, chat)]
    alert = next(text for text in told if "gave up" in text)
    assert alert.startswith("⚠ Ada (+1•••••••01) gave up 1 archive\n" + path.name)
    assert "FILE_ID_INVALID" in alert


async def test_an_account_that_needs_login_is_spoken_for_by_another(world, chat):
    await world.post_archive(world.sources[0], size=2_000_000)
    await world.admin.set_shape(mbps=8)
    await world.admin.revoke_sessions(PHONES[1])
    ended, log = await _run(world, chat)
    assert ended == {"exit": 1}, log
    told = [(message["phone"], message["text"]) for message in await _standing(world, chat)]
    alerts = [(phone, text) for phone, text in told if "has to be logged in again" in text]
    assert [phone for phone, _ in alerts] == [PHONES[0].lstrip("+")]
    assert alerts[0][1].startswith("⚠ Ada (+1•••••••02)")


async def test_after_a_kill_the_next_run_goes_on_with_the_same_message(world, chat):
    for _ in range(3):
        await world.post_archive(world.sources[0])
    await world.admin.set_shape(mbps=1)
    ended, log = await _run(world, chat, *ONE_ACCOUNT, faults="kill=telegram.messages.EditMessage:after:1")
    assert ended == {"signal": 9}, log
    assert len(await _standing(world, chat)) == 1
    await world.admin.set_shape()
    ended, log = await _run(world, chat, *ONE_ACCOUNT)
    assert ended == {"exit": 0}, log
    said = await _standing(world, chat)
    assert [message["text"][0] for message in said] == ["■"]


# A message that was sent and not yet remembered is the one thing that a kill can leave behind.
@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "left"),
    [
        ("telegram.messages.SendMessage:before:1", 0),
        ("telegram.messages.SendMessage:after:1", 1),
        ("db.operations.message:before:1", 1),
        ("db.operations.message:after:1", 0),
        ("telegram.messages.EditMessage:before:1", 0),
        ("telegram.messages.EditMessage:after:1", 0),
        ("telegram.messages.SendMessage:before:2", 0),
        ("telegram.messages.SendMessage:after:2", 0),
        ("telegram.channels.DeleteMessages:before:1", 0),
        ("telegram.channels.DeleteMessages:after:1", 0),
        ("db.operations.message:before:2", 0),
        ("db.operations.message:after:2", 0),
    ],
)
async def test_a_kill_in_the_middle_of_a_report_loses_no_archive(world, chat, place, left):
    for _ in range(3):
        await world.post_archive(world.sources[0])
    await world.admin.set_shape(mbps=1)
    ended, log = await _run(world, chat, *ONE_ACCOUNT, faults=f"kill={place}")
    assert ended == {"signal": 9}, log
    await world.admin.set_shape()
    await world.drain(*ONE_ACCOUNT)
    await world.check_invariants()
    standing = [message["text"] for message in await _standing(world, chat)]
    assert len([text for text in standing if not text.startswith("■")]) == left
