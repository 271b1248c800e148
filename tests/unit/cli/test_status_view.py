"""What people see: every fact is on the screen, at any width."""

import io
from dataclasses import replace

import pytest
from fleet_facts import AT, SILENT_AFTER, busy_fleet, quiet_fleet
from rich.console import Console

from worker.cli.status_view import compact_line, full_view, out_of_date
from worker.domain.pauses import Pause
from worker.status.compose import compose
from worker.status.facts import Facts


def _shown(facts: Facts, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(full_view(compose(facts, silent_after=SILENT_AFTER)))
    return console.file.getvalue()


def _line(facts: Facts) -> str:
    return compact_line(compose(facts, silent_after=SILENT_AFTER))


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("facts", [busy_fleet(), quiet_fleet(), Facts(at=AT, accounts=[], workers=[])])
def test_no_line_is_wider_than_the_terminal(facts, width):
    assert max(len(line) for line in _shown(facts, width).splitlines()) <= width


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        "Ada @ada",
        "+1•••••••01",
        "Premium",
        "upload 63%",
        "nas:4711",
        "2h 34m",
        "45.2 MB",
        "1m 15s ago",
        "1,311 calls, 2 failed",
        "messages.getHistory",
        "RESTRICTED",
        "7m 00s",
        "6m 32s",
        "chat 1005",
        "was refused 3 times",
        "3.4 times slower",
        "45/128 (35%) scanned",
        "12,847",
        "1,024 indexed",
        "1 failed",
        "Workshop - Kit 07.zip",
        "10.0 MB/s",
        "37s",
        "by eve@nas",
        "resumes in 1h 58m",
        "until resumed",
        "Tower.zip in Model Archive",
        "the same content is being published",
        "in 4s",
        "given up",
        "next in line",
    ],
)
def test_a_busy_fleet_shows(words, width):
    assert words in _shown(busy_fleet(), width)


def test_a_quiet_fleet_shows_no_empty_sections():
    shown = _shown(quiet_fleet())
    assert "Rate limits  OK" in shown
    assert "Waiting" not in shown
    assert "Paused" not in shown


def test_a_fleet_that_was_never_set_up_says_what_to_do():
    shown = _shown(Facts(at=AT, accounts=[], workers=[]))
    assert "worker accounts add" in shown
    assert "worker run" in shown


def test_a_paused_account_that_still_works_is_finishing():
    assert "finishing fetch 31%" in _shown(busy_fleet())
    assert "paused, 2 sets finishing, resumes in 1h 00m" in _line(
        replace(busy_fleet(), pauses=[Pause(seconds_left=3600)])
    )


def test_names_are_shown_as_they_are_and_never_as_markup():
    named = replace(busy_fleet().accounts[0], display_name="[red]Ada[/red]")
    assert "[red]Ada[/red]" in _shown(replace(quiet_fleet(), accounts=[named]))


def test_names_of_strangers_cannot_steer_the_terminal():
    hostile = "\x1b]0;title\x07\x1b[2J\n\u202egnp.zip"
    under_way = [replace(busy_fleet().under_way[0], name=hostile, channel=hostile)]
    held_back = [replace(busy_fleet().held_back[0], name=hostile, reason=hostile)]
    shown = _shown(replace(busy_fleet(), under_way=under_way, held_back=held_back))
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "gnp.zip" in shown


def test_the_compact_form_is_one_line_with_the_figures_that_matter():
    line = _line(busy_fleet())
    assert "\n" not in line
    for part in (
        "1 worker, 2/3 accounts",
        "running",
        "Calls: 1,311/5m",
        "RESTRICTED (2)",
        "45/128 (35%)",
        "19.0 MB/s",
    ):
        assert part in line


def test_a_view_that_cannot_be_renewed_says_why():
    console = Console(file=io.StringIO(), width=80)
    console.print(
        out_of_date(full_view(compose(quiet_fleet(), silent_after=30)), "PostgreSQL is not reachable")
    )
    assert console.file.getvalue().startswith("PostgreSQL is not reachable")
    assert "nas:4711" in console.file.getvalue()
