"""The demo's table and what follows it, at the widths of real terminals."""

from dataclasses import replace

import pytest
from rich.cells import cell_len

from worker.cli.demo_report import outcome_lines, report, what_next
from worker.demo.proof import Ledger
from worker.demo.run import DemoResult
from worker.demo.samples import make_samples
from worker.store.overview import SetOutcome

WIDTHS = (60, 80, 120)
LONG = "The Complete Illustrated Encyclopaedia of Clockwork Automata, Volume 12 (Second Edition).part01.rar"
CJK = "工作室 - 龍の模型 第十二巻 完全版 (改訂第二版) 三次元印刷用データ一式.zip"
COMMANDS = [f".venv/bin/worker --demo {rest}" for rest in ("status", "packages list", "fetch 14 -o restored")]


def outcome(name, **facts):
    plain = {"channel": "Model Archive", "state": "indexed", "size": 99_900_000, "package_id": 14}
    rest = {"file_count": 3, "part_count": 1, "message_count": 1, "marks": [], "reason": None}
    return SetOutcome(name, **{**plain, **rest, **facts})


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Every name that the demo posts, and two that somebody else might."""
    samples = make_samples(tmp_path_factory.mktemp("samples")).values()
    names = [sample.files[0].name for sample in samples] + [LONG, CJK]
    waits = {"state": "collecting", "package_id": None, "message_count": None}
    return [
        *(outcome(name, part_count=3, message_count=3) for name in names),
        *(outcome(name, state="duplicate") for name in names),
        *(outcome(name, marks=["encrypted", "encrypted-names"], file_count=0) for name in names),
        *(outcome(name, reason=f"waits for part 2 of 3: {name}", **waits) for name in names),
        outcome(LONG, channel=CJK * 2, state="skipped", package_id=None, reason="its source forbids copying"),
    ]


def lines_of(outcomes, width):
    return [line.plain for line in outcome_lines(outcomes, width)]


@pytest.mark.parametrize("width", [30, *WIDTHS])
def test_no_line_of_the_table_is_wider_than_the_terminal(outcomes, width):
    assert [line for line in lines_of(outcomes, width) if cell_len(line) > width] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_every_archive_has_a_line_with_its_name_whole_or_cut_with_an_ellipsis(outcomes, width):
    heads = [line for line in lines_of(outcomes, width) if line.startswith("  ") and line[2] != " "]
    assert len(heads) == len(outcomes)
    for head, each in zip(heads, outcomes, strict=True):
        shown = head[2:].split("  ")[0]
        assert shown == each.name or (shown[-1] == "…" and each.name.startswith(shown[:-1].rstrip()))


@pytest.mark.parametrize("width", [80, 120])
def test_the_names_of_the_demo_are_not_cut_where_there_is_room(outcomes, width):
    demo = [each for each in outcomes if each.name not in (LONG, CJK)]
    assert not any("…" in line for line in lines_of(demo, width))


@pytest.mark.parametrize("width", WIDTHS)
def test_what_became_of_an_archive_is_broken_between_words_only_and_its_name_nowhere(outcomes, width):
    demo = [each for each in outcomes if each.name not in (LONG, CJK)]
    text = "\n".join(lines_of(demo, width))
    for each in demo:
        if each.state == "collecting":
            assert each.reason in text or f"waits for part 2 of 3:\n      {each.name}" in text
        else:
            assert "encrypted-names" in text


def test_a_long_word_about_an_archive_stands_on_a_line_of_its_own(outcomes):
    lines = lines_of(
        [outcome("Half a Book.rar", state="collecting", package_id=None, reason="waits " * 12)], 80
    )
    assert lines[1].split() == ["Half", "a", "Book.rar", "99.9", "MB"]
    assert lines[2].startswith("      waits waits")


@pytest.fixture
def result(outcomes):
    return DemoResult(len(outcomes), 31_400_000, 4_500_000, 14.8, outcomes, [], Ledger(14, 14, 0, 0, 0))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_whole_report_fits_and_its_commands_stand_in_one_line_each(result, width):
    lines = [
        line.plain for line in (*report(result, width), *what_next(COMMANDS, ".worker/demo/demo.log", width))
    ]
    assert [line for line in lines if cell_len(line) > width] == []
    assert [line.strip() for line in lines if "--demo" in line] == COMMANDS


@pytest.mark.parametrize(
    ("new", "moved", "said"),
    [
        (0, 0, "Nothing to do: every archive was dealt with before."),
        (4, 10, " left out (4 since the last run). "),
        (0, 10, " left out (0 since the last run). "),
    ],
)
def test_a_later_run_says_what_was_left_to_do(result, new, moved, said):
    later = replace(result, new=new, bytes_moved=moved)
    assert said in " ".join(line.plain for line in report(later, 120))
