"""What strangers have written steers no terminal: one place sees to it, and nothing goes around it."""

import ast
import io
import json
import logging
import re
import sys
from pathlib import Path

import pytest
import structlog
from rich.panel import Panel
from rich.table import Table

import worker
from worker import log
from worker.cli.terminal import open_console
from worker.plain_text import GuardedStream, guard_streams, lines, plain, to_json, unguarded

# Retitles the window; a C1 control that begins a sequence; turns the line around; ends the line; a lone surrogate.
NASTY = "\x1b]0;x\x07a\x9b31mb\u202ec\u2066d\x7fe\u2028f\ud800g"
_ROOT = Path(worker.__file__).parent


def _is_harmless(text):
    return all(character.isprintable() or character in "\n\t\u3000\xa0" for character in text)


def test_a_line_loses_what_steers_a_terminal_and_keeps_every_script():
    assert _is_harmless(plain(NASTY + "\n"))
    assert "\n" not in plain("a\nb")
    kept = "Ünïcödé 漢字 עברית\u3000\xa0🎉"
    assert plain(kept) == kept


def test_text_of_several_lines_keeps_them():
    assert lines(f"a\n\t{NASTY}\nb").count("\n") == 2
    assert _is_harmless(lines(NASTY))


@pytest.mark.parametrize("text", [NASTY[:-2], "\U000e0041", "\0", "漢\n\r", "🎉"])
def test_json_reads_back_as_it_was_and_holds_nothing_unprintable(text):
    written = to_json({text: [text]})
    assert _is_harmless(written)
    assert json.loads(written) == {text: [text]}


def test_half_a_character_is_replaced_in_json():
    assert json.loads(to_json("a\ud800")) == "a\ufffd"


def test_a_guarded_stream_lets_plain_text_through_only(monkeypatch):
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    guard_streams()
    guard_streams()
    sys.stdout.write(NASTY)
    sys.stderr.writelines([NASTY])
    assert _is_harmless(out.getvalue() + err.getvalue())
    assert isinstance(sys.stdout, GuardedStream)
    assert unguarded(sys.stdout) is out
    assert sys.stdout.isatty() is False


def test_a_table_on_a_console_is_plain_but_for_its_own_colours():
    out = io.StringIO()
    table = Table(NASTY)
    table.add_row(f"[red]{NASTY}[/red]")
    open_console(file=out, force_terminal=True, color_system="standard", width=60).print(Panel(table), NASTY)
    shown = out.getvalue()
    assert "\x1b[31m" in shown
    assert _is_harmless(re.sub(r"\x1b\[[\d;]*m", "", shown))


def _fail():
    raise ValueError(NASTY[:-2])


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_line_of_the_log_is_plain_also_with_an_exception_and_from_a_library(style):
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, sys.excepthook
    stream = io.StringIO()
    try:
        log.configure("debug", style, stream)
        log.get_logger("worker.tests").warning("set.found", name=NASTY[:-2], nested=[NASTY[:-2]])
        logging.getLogger("a library").warning("%s\nsecond line", NASTY[:-2])
        try:
            _fail()
        except ValueError:
            log.get_logger("worker.tests").exception("set.failed")
    finally:
        root.handlers[:], sys.excepthook = handlers, hook
        root.setLevel(level)
        logging.captureWarnings(capture=False)
        structlog.reset_defaults()
    assert _is_harmless(stream.getvalue())
    assert not any(line.startswith("second line") for line in stream.getvalue().splitlines())


def test_an_error_that_nobody_caught_is_told_in_plain_text(capsys):
    log._report_bug(ValueError, ValueError(NASTY[:-2]), None)
    assert _is_harmless(capsys.readouterr().err)


def _calls():
    """Every call in the package, with its module and what is called."""
    for path in sorted(_ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield path.relative_to(_ROOT).as_posix(), ast.unparse(node.func), node


def test_no_command_writes_its_own_json_or_opens_its_own_console():
    around = {
        (path, called)
        for path, called, _ in _calls()
        if (called == "json.dumps" and path.startswith(("cli/", "status/")))
        or (called.split(".")[-1] in ("Console", "PlainConsole") and path != "cli/terminal.py")
    }
    assert around == set()


def test_what_is_written_beside_the_guard_has_made_its_own_texts_plain():
    beside = {path for path, called, _ in _calls() if called.endswith(("unguarded", "stdout.buffer.write"))}
    assert beside == {"log.py", "cli/terminal.py", "cli/demo_report.py"}


def test_every_program_of_ours_guards_its_streams_first():
    programs = {path for path, called, _ in _calls() if called == "guard_streams"}
    assert programs == {"cli/main.py", "sandbox/__main__.py"}
