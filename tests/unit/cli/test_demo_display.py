"""What moves on the screen while the demo works."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from worker.cli.demo_display import Lines, Scene, display

CJK = "工作室 - 龍の模型 第十二巻 完全版 (改訂第二版).zip"
NAMES = ["Workshop - Kit 01.zip", "Clockmaker - Pendulum.tar.gz", CJK, "x" * 90]


def scene(now):
    return Scene(tell=lambda _: None, clock=lambda: now[0])


def drawn(shown, width):
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(shown)
    return console.file.getvalue().splitlines()


def test_it_shows_what_is_under_way_how_fast_and_how_many_of_how_many():
    now = [0.0]
    shown = scene(now)
    shown.act("fetching and publishing")
    shown.standing(3, 21, 1_000_000)
    now[0] = 1.0
    shown.standing(4, 21, 4_000_000)
    shown.bytes_moved("Atlas.rar", "fetch", 600_000, 1_200_000)
    shown.bytes_moved("Vase.7z", "upload", 900_000, 900_000)
    head, first, second = drawn(shown, 80)
    assert head.endswith("fetching and publishing · 4 of 21 archives · 4.0 MB moved · 3.0 MB/s")
    assert first.split() == ["download", "Atlas.rar", "━" * 10 + "─" * 10, "1.2", "MB", "50%"]
    assert second.split()[:2] == ["upload", "Vase.7z"]
    shown.set_ended("Atlas.rar", "published")
    assert len(drawn(shown, 80)) == 2


def test_the_speed_is_that_of_the_last_seconds():
    now = [0.0]
    shown = scene(now)
    for second in range(10):
        now[0] = float(second)
        shown.standing(0, 21, min(second, 5) * 1_000_000)
    assert "0 B/s" in drawn(shown, 80)[0]


@pytest.mark.parametrize("width", [20, 30, 45, 60, 80, 120])
def test_every_line_leaves_room_for_the_echo_of_ctrl_c_however_narrow_the_terminal(width):
    shown = scene([0.0])
    shown.act("finishing what is under way; Ctrl-C again ends it at once")
    shown.standing(3, 21, 1_000_000)
    for name in NAMES:
        shown.bytes_moved(name, "fetch", 600_000, 999_000_000)
    lines = drawn(shown, width)
    assert len(lines) == 1 + len(NAMES)
    assert [line for line in lines if cell_len(line) > width - 2] == []


def test_facts_that_do_not_fit_are_left_out_whole():
    shown = scene([0.0])
    shown.act("fetching and publishing")
    shown.standing(3, 21, 1_000_000)
    assert drawn(shown, 50)[0][2:] == "fetching and publishing · 3 of 21 archives"


def test_without_a_terminal_there_are_plain_lines_and_with_json_only_what_a_person_must_know(capsys):
    for only_told in (False, True):
        with display(Console(stderr=True), only_told=only_told) as audience:
            assert isinstance(audience, Lines)
            audience.act("setting the stage")
            audience.set_ended("Vase.7z", "published")
            audience.tell("account 1 waits")
    out, err = capsys.readouterr()
    told = "account 1 waits\n"
    assert (out, err) == ("", f"setting the stage …\npublished: Vase.7z\n{told}{told}")


def test_a_terminal_that_cannot_move_its_cursor_gets_lines_too(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with display(Console(file=io.StringIO(), force_terminal=True)) as audience:
        assert isinstance(audience, Lines)
