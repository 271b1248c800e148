"""``worker channels`` as a person uses it."""

import asyncio
import json

import pytest
from world import PHONES

ADA, GRACE = PHONES


@pytest.fixture
def channels(world):
    """Run a ``worker channels`` command: its exit code and everything it said."""

    async def command(*argv):
        ended = await world.run("channels", *argv)
        return ended["exit"], world.workers.logs[-1].read_text()

    return command


async def _row(channels, telegram_id):
    code, said = await channels("list", "--json")
    assert code == 0
    return next(row for row in json.loads(said) if row["id"] == telegram_id)


async def test_a_public_channel_is_joined_by_every_account_and_read(world, channels, run):
    made = await world.admin.create_channel("Vault", username="printvault")
    code, said = await channels("add", "https://t.me/printvault", "--category", "models")
    assert (code, "Vault is read from now on, by 2 accounts" in said) == (0, True), said
    row = await _row(channels, made["channel_id"])
    assert (row["role"], row["category"], row["readers"]) == ("source", "models", 2)
    world.sources.append(made["channel_id"])
    await world.post_archive(made["channel_id"])
    await run()
    await world.check_invariants()


async def test_a_source_is_copied_only_while_a_person_says_so(world, channels):
    source = world.sources[0]
    assert not (await _row(channels, source))["copy_mode"]
    for option, copied, told in (
        ("--copy", True, "Its files are sent on as they are, without uploading them."),
        ("--skip-protected", True, "What its owner has protected is skipped."),
        ("--no-copy", False, "Its files are uploaded."),
    ):
        code, said = await channels("add", "First", option)
        assert (code, said.splitlines()[-1]) == (0, told)
        assert (await _row(channels, source))["copy_mode"] is copied
        _, said = await channels("list")
        assert ("First  copied" in said) is copied


async def test_an_invitation_is_used_by_the_account_that_is_named(world, channels):
    made = await world.admin.create_channel("Secret")
    link = await world.admin.invite_link(made["channel_id"])
    code, said = await channels("add", link, "--account", GRACE)
    assert code == 0, said
    assert (await _row(channels, made["channel_id"]))["readers"] == 1
    # The second account comes along later, by the same link.
    assert (await channels("add", link))[0] == 0
    assert (await _row(channels, made["channel_id"]))["readers"] == 2


async def test_bad_input_is_answered_with_one_line_and_a_remedy(world, channels):
    for argv, says in (
        (("add", "@nobodyhasthis"), "nobody has that name"),
        (("add", "t.me/+nosuchinvite"), "the invitation is no longer valid"),
        (("add", "No Such Title"), "no account has seen a channel or supergroup"),
        (("destination", "-4000123"), "is a basic group"),
        (("destination", "First"), "is read as a source"),
        (("add", "Library"), "is where archives go"),
        (("disable", "Library"), "is no source"),
        (("remove", "Library"), "is no source"),
        (("add", "@nobodyhasthis", "--account", "+10000000009"), "is not logged in"),
    ):
        code, said = await channels(*argv)
        (line,) = [line for line in said.splitlines() if line.startswith("worker: ")]
        assert (code, says in line, " — " in line) == (2, True, True), (argv, said)
        assert "Traceback" not in said


async def test_without_a_destination_a_run_says_how_to_choose_one(world):
    await world.fetch("UPDATE channels SET is_destination = false")
    assert await world.run("run", "--once") == {"exit": 2}
    (line,) = [
        each for each in world.workers.logs[-1].read_text().splitlines() if each.startswith("worker: ")
    ]
    assert line == "worker: no destination channel is set — run: worker channels destination CHANNEL"


async def test_archived_chats_are_discovered_too(world, channels):
    made = await world.admin.create_channel("Late", members=[ADA])
    await world.admin.archive_chat(made["channel_id"], ADA)
    code, said = await channels("discover")
    assert (code, "account 1: 4 channels" in said) == (0, True), said
    assert (await _row(channels, made["channel_id"]))["readers"] == 1


async def test_a_chat_that_moves_to_the_top_while_the_list_is_paged_is_not_taken_for_left(world, run):
    for number in range(110):
        await world.admin.create_channel(f"Other {number}", members=[ADA])
    paging = await world.admin.add_rule("messages.getDialogs", "delay", seconds=None, nth=2)
    running = asyncio.create_task(run())
    await world.until_hit(paging)
    # The oldest of all: it was on the page that is still to come.
    await world.post_archive(world.sources[0])
    await world.admin.lift_rule(paging)
    await running
    assert [row["state"] for row in await world.fetch("SELECT state FROM archive_sets")] == ["indexed"]


async def test_what_waits_is_left_out_with_its_source_and_taken_up_again(world, channels, run, sets):
    first, *_ = world.make_volumes()
    await world.post_files(world.sources[0], [first])
    await run()
    assert (await channels("remove", "First"))[0] == 0
    assert (await sets())["volumes-1.zip"][:2] == ("skipped", "its source was removed")
    assert (await channels("add", "First"))[0] == 0
    await run()
    assert (await sets())["volumes-1.zip"][:2] == ("collecting", "waits for part 2 of 2: volumes-1.zip.002")


async def test_p14_the_owner_may_allow_protected_content(world, channels, run, sets):
    await world.admin.set_noforwards(world.sources[0], True)
    await world.post_archive(world.sources[0])
    await run()
    assert (await sets())["archive-1.zip"][0] == "skipped"
    code, said = await channels("add", "First", "--allow-protected")
    assert (code, "1 archives that were skipped are in line again" in said) == (0, True), said
    await run()
    await world.check_invariants()
