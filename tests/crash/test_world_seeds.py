"""Seeds that draw what the world does beside the fleet. A failing seed is in the test's name, and draws the same again.

It repeats the schedule that it prints, not every interleaving of the processes that meet it.
"""

import asyncio
import contextlib
import os
import re
import signal

import destination_deeds  # noqa: F401 - each of them makes its deeds known
import fleet_deeds  # noqa: F401
import pytest
import source_deeds  # noqa: F401
from hang_guard import HANG_SECONDS
from others import DEEDS, STRANGER, UNLUCKY, Others
from worker_processes import STARVED
from world import PHONES, open_world
from world_judge import judge
from world_schedule import DESTINATION_DEEDS, FLEET_DEEDS, SOURCE_DEEDS, draw

from worker.cli.recover import recover

SEEDS = int(os.environ.get("CRASH_WORLD_SEEDS", "20"))
DAY = 86_400
_RUNS = 4
# What the fleet tells people to do about an upload that its account cannot finish.
_REMEDY = re.compile(r"worker (recover --(?:take-over|give-up) \d+)")


@contextlib.asynccontextmanager
async def _open(tmp_path, database_url, schedule):
    # So few changes make a difference too long that a schedule can have them.
    async with open_world(tmp_path, database_url, "--difference-limit", "100") as world:
        world.settings["WORKER_FLEET__CYCLE_SECS"] = "1"
        others = Others(world)
        if schedule.is_group:
            made = await world.admin.create_channel(
                "Annex", broadcast=False, hidden_history=schedule.hides_history, admins=list(PHONES)
            )
            world.destination = made["channel_id"]
            await world.fetch("UPDATE channels SET is_destination = false")
            await world.fetch(
                "INSERT INTO channels (telegram_id, title, kind, is_destination)"
                " VALUES ($1, 'Annex', 'supergroup', true)",
                world.destination,
            )
        if schedule.hides_history:
            await world.open_hidden_group()
        if schedule.has_forum:
            others.forum, others.topics = await world.open_forum("Lamps")
        await world.admin.create_account(STRANGER, "Mallory")
        await world.admin.join(world.destination, STRANGER, admin=True)
        yield world, others


async def _ended(world, pid: int, problems: list[str]) -> dict:
    """How a process ends; one that hangs is killed, which is a problem of its own."""
    ending = asyncio.create_task(asyncio.to_thread(world.workers.wait, pid))
    done, _ = await asyncio.wait({ending}, timeout=HANG_SECONDS)
    if not done:
        os.kill(pid, signal.SIGKILL)
        problems.append("a process did not end")
    return await ending


async def _run(world, problems: list[str], *argv: str) -> dict:
    return await _ended(world, world.workers.start(*argv, env=world.env()), problems)


async def _play(world, others, each, problems):
    for deed in each.before:
        await others.do(deed)
    argv = [("run", "--once")]
    if each.workers > 1:
        argv = [("run", "--once", "--account", phone) for phone in PHONES]
    first, *more = [
        world.workers.start(*words, env=world.env("" if number else each.fault))
        for number, words in enumerate(argv)
    ]
    if each.fault.startswith("stop="):
        stopped = await asyncio.to_thread(world.workers.until_stopped, first)
        for deed in each.meanwhile:
            await others.do(deed)
        if each.command:
            await _run(world, problems, *_words(world, each.command))
        if stopped == {"stopped": True}:
            os.kill(first, signal.SIGCONT)
    for pid in (first, *more):
        await _ended(world, pid, problems)
    await world.admin.clear_rules()


def _words(world, command: str) -> list[str]:
    if command != "accounts login":
        return command.split()
    code = world.folder / "code.txt"
    code.write_text("12345\n")
    return ["accounts", "login", UNLUCKY, "--again", "--code-file", str(code)]


async def _calm_down(world, others, problems):
    """Everybody is let in and may post, nothing is forbidden; what came late has come. Then people do as they are told."""
    for source, path in others.later:
        await world.post_files(source, [path])
    for source in world.sources:
        await world.admin.set_noforwards(source, noforwards=False)
        await world.admin.join(source, UNLUCKY)
    await world.admin.join(world.destination, UNLUCKY, admin=True)
    await others.resume()
    if others.deleted:
        # More of them may be missing than the fleet believes by itself.
        can_accept = any("--accept-missing" in option.opts for option in recover.params)
        accept = ["--accept-missing"] * can_accept
        await _run(world, problems, "recover", *accept)
    runs = 0
    while runs < _RUNS and not problems:
        # Whatever waits has waited.
        await others.set_clock(others.ahead + DAY)
        # One that a busy machine let starve has shown nothing.
        runs += await _run(world, problems, "run", "--once") != STARVED
        asked = await _as_they_are_told(world, others)
        for words in asked:
            await others.set_clock(others.ahead + DAY)
            await _run(world, problems, *words)
        if not asked and not await world.unfinished():
            return


async def _as_they_are_told(world, others) -> list[list[str]]:
    """The commands that the fleet's reasons name. Sets that people left out, or that were given up, are tried again."""
    rows = await world.fetch(
        "SELECT id, state, reason FROM archive_sets WHERE reason IS NOT NULL ORDER BY id"
    )
    for row in rows:
        if row["state"] == "failed" or row["reason"].startswith("left out by"):
            await others.try_again(row["id"])
    told = {found[1] for row in rows if (found := _REMEDY.search(row["reason"]))}
    again = any(row["state"] == "failed" or row["reason"].startswith("left out by") for row in rows)
    return [words.split() for words in sorted(told)] or [["run", "--once"]] * again


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whatever_the_world_does_ours_is_there_once_and_theirs_is_left_alone(
    tmp_path, database_url, seed
):
    schedule = draw(seed)
    problems: list[str] = []
    async with _open(tmp_path, database_url, schedule) as (world, others):
        for each in schedule.rounds:
            await _play(world, others, each, problems)
        await _calm_down(world, others, problems)
        problems += await judge(others)
    told = "\n".join([str(schedule), "problems:", *(f"  {problem}" for problem in problems)])
    assert not problems, f"\n{told}"


def test_a_seed_draws_the_same_schedule_again_and_every_seed_another():
    schedules = [str(draw(seed)) for seed in range(50)]
    assert schedules == [str(draw(seed)) for seed in range(50)]
    assert len(set(schedules)) == 50


def test_everything_that_a_schedule_may_hold_can_be_done():
    assert {what for what, _ in (*SOURCE_DEEDS, *DESTINATION_DEEDS, *FLEET_DEEDS)} == set(DEEDS)
