"""The demo: everything that people post, dealt with once, and proven by a ledger that is not ours."""

import asyncio
import json
import re
import subprocess

import psutil
import pytest
from fleet_rows import execute
from forked import plain_environment
from rich.cells import cell_len
from worker_command import installed_worker, worker, worker_on_a_screen

from worker.store.embedded import open_cluster

PUBLISHED, DUPLICATES = 14, 5


async def test_the_demo_accounts_for_every_archive_and_a_second_run_finds_nothing_to_do_and_says_why_it_waits(
    tmp_path,
):
    first = await installed_worker("demo", "--json", "--state", str(tmp_path / "demo"))
    assert first.code == 0, first.err
    done = json.loads(first.out)
    assert done["ledger"] == {
        "unique_contents": PUBLISHED,
        "message_sets": PUBLISHED,
        "doubled": 0,
        "lost": 0,
        "unexpected": 0,
    }
    assert (done["published"], done["duplicates"], done["failed"]) == (PUBLISHED, DUPLICATES, [])
    (waiting,) = done["waiting"]
    assert "Half a Book.part2.rar" in waiting["reason"]
    (skipped,) = done["skipped"]
    assert skipped["channel"] == "Closed Press"
    assert done["archives"] == done["new"] == PUBLISHED + DUPLICATES + 2
    assert done["split_parts"] > 1
    assert done["bytes_moved"] > 0
    assert done["bytes_avoided"] > 0

    # What a demo that was killed leaves behind.
    with open_cluster(tmp_path / "demo") as address:
        await execute(
            address,
            "UPDATE accounts SET worker_id = w.id, lease_seconds = 5, lease_until = fleet_now() + interval '5 s'"
            " FROM (SELECT id FROM workers LIMIT 1) w WHERE accounts.id = 1",
        )
    second = await worker("demo", "--json", "--state", str(tmp_path / "demo"))
    again = json.loads(second.out)
    assert (second.code, again["new"], again["bytes_moved"]) == (0, 0, 0)
    assert again["ledger"] == done["ledger"]
    assert "Traceback" not in first.err + second.err
    # Logs go to a file: whatever stands here is for a person to read.
    assert "{" not in first.err + second.err
    assert "package.indexed" in (tmp_path / "demo" / "demo.log").read_text()
    assert "account 1: its last worker ended without a word; waiting " in second.err
    assert "waiting" not in first.err


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def repository(tmp_path):
    """A working folder in which `make demo` has chosen the place, as it does."""
    (tmp_path / ".worker" / "demo").mkdir(parents=True)
    return tmp_path


def _left_on_the_screen(shown):
    """The lines that are there at the end: the moving display takes itself away."""
    return _CONTROL.sub("", shown.rsplit("\x1b[2K", 1)[-1]).splitlines()


def _at_work_in(folder):
    """Command lines of the processes that have to do with this folder."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(folder) in line]


async def test_a_first_run_fits_the_terminal_and_the_three_commands_it_ends_with_work_as_they_stand(
    repository,
):
    ended = await asyncio.to_thread(worker_on_a_screen, "demo", cwd=repository)
    assert ended.code == 0, ended.out
    assert "fetching and publishing" in ended.out
    assert re.search(r"(download|upload) +\S.*━.* \d+%", ended.out)
    assert re.search(r"\d+ of \d+ archives", ended.out)
    assert [line for line in _CONTROL.sub("", ended.out).splitlines() if "{" in line] == []
    lines = _left_on_the_screen(ended.out)
    # A path of the test's is as long as it is; in a checkout it is .venv/bin/worker.
    assert [line for line in lines if cell_len(line) > 80 and "--demo" not in line] == []
    assert "The log is in .worker/demo/demo.log" in lines
    commands = [line.strip() for line in lines if " --demo " in line]
    assert [command.split(" --demo ")[1].split()[0] for command in commands] == [
        "status",
        "packages",
        "fetch",
    ]
    said = [
        await asyncio.to_thread(
            subprocess.run, command, shell=True, cwd=repository, env=plain_environment(), capture_output=True
        )
        for command in commands
    ]
    assert [(each.returncode, each.stderr) for each in said] == [(0, b"")] * 3
    assert b"14 indexed" in said[0].stdout
    assert said[1].stdout.count(b"\n") == PUBLISHED
    assert b"is restored" in said[2].stdout
    assert any((repository / "restored").iterdir())
    assert _at_work_in(repository) == []


async def test_ctrl_c_leaves_the_terminal_well_says_how_to_go_on_and_nothing_running(repository):
    ended = await asyncio.to_thread(worker_on_a_screen, "demo", cwd=repository, interrupt_at="━", columns=120)
    assert ended.code == 130, ended.out
    assert "finishing what is under way; Ctrl-C again ends it at once" in ended.out
    assert ended.out.rfind("\x1b[?25h") > ended.out.rfind("\x1b[?25l")
    *_, stopped, kept, go_on, command = _left_on_the_screen(ended.out)
    assert re.fullmatch(
        r"Stopped: (\d+ of \d+ archives are dealt with, and )?all that was done is kept in", stopped
    )
    assert kept == "  .worker/demo"
    assert go_on == "Go on with:"
    assert _at_work_in(repository) == []
    again = await asyncio.to_thread(
        subprocess.run,
        *(f"{command} --json",),
        shell=True,
        cwd=repository,
        env=plain_environment(),
        capture_output=True,
    )
    done = json.loads(again.stdout)
    assert (done["ledger"]["doubled"], done["ledger"]["lost"], done["published"]) == (0, 0, PUBLISHED)
