"""Whatever the documents and the units tell a person or systemd to run exists."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from worker.cli.main import cli
from worker.config.load import load
from worker.config.settings import Settings

_ROOT = Path(__file__).parents[2]
_DOCUMENTS = [*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")]
_SYSTEMD = _ROOT / "docs" / "systemd"
_UNITS = sorted([*_SYSTEMD.glob("*.service"), *_SYSTEMD.glob("*.timer")])
# In backticks, or as a line of a console block.
_QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)|^[$#] (.*)$", re.MULTILINE)


def _said(document):
    """The commands in a document, without their comments."""
    for quoted, line in _QUOTED.findall(document.read_text(encoding="utf-8")):
        yield re.split(r" +#", quoted or line)[0].replace("\\|", "|")


def _refused(words):
    """What of these words behind ``worker`` is neither a command, nor an option of it; None if all is well."""
    context, command = click.Context(cli), cli
    options = set()
    for word in words:
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z|-]*", word):
            found = [command.get_command(context, each) for each in word.split("|")]
            if None in found:
                return word
            # Of several that are named at once the last one's options follow, if any do.
            command = found[-1]
        options |= {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
        for option in re.findall(r"(?<![\w-])--[a-z-]+", word):
            if option not in options | {"--help"}:
                return option
    return None


def _commands_of(text):
    """What stands behind each ``worker``, or what docs/systemd calls it; a container of that name is none."""
    return [found.split() for found in re.findall(r"(?:^|[ /])(?:worker|as-fleet) ((?!worker ).*)", text)]


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_command_in_a_document_exists(document):
    said = [(text, words) for text in _said(document) for words in _commands_of(text)]
    assert [text for text, words in said if _refused(words)] == []


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_every_target_of_make_in_a_document_exists(document):
    targets = re.findall(r"^([a-z-]+):.*## ", (_ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [
        word for text in _said(document) for word in re.findall(r"^make (?:[A-Z]+=\S+ )*([a-z-]+)", text)
    ]
    assert [word for word in named if word not in targets] == []


def test_what_does_not_exist_is_noticed():
    assert _refused(["accounts", "add|login", "+49301234567", "--code-file", "code.txt"]) is None
    assert _refused(["run", "[--once]"]) is None
    assert _refused(["runs"]) == "runs"
    assert _refused(["accounts", "add|lose"]) == "add|lose"
    assert _refused(["run", "[--twice]"]) == "--twice"


def test_the_units_run_commands_that_exist():
    lines = [line for unit in _UNITS for line in unit.read_text().splitlines() if line.startswith("Exec")]
    assert {line.split()[0] for line in lines} == {"ExecStart=/opt/archive-fleet/bin/worker"}
    assert [line for line in lines if _refused(line.split()[1:])] == []


def test_every_variable_of_the_units_is_a_setting(tmp_path):
    environment = (_SYSTEMD / "environment").read_text()
    units = "".join(unit.read_text() for unit in _UNITS)
    given = shlex.split(" ".join(re.findall(r"^Environment=(.*)$", units, re.MULTILINE)))
    values = dict(each.partition("=")[::2] for each in (*shlex.split(environment, comments=True), *given))
    assert len(values) >= 6
    (secret := tmp_path / "secret").write_text("x")
    load({name: str(secret) if name.endswith("_FILE") else value for name, value in values.items()})


def test_a_service_is_given_more_time_to_stop_than_it_takes_to_drain():
    unit = (_SYSTEMD / "archive-fleet.service").read_text()
    assert (
        int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE).group(1)) > Settings().fleet.drain_secs
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path):
    program = shutil.which("true")
    for unit in _UNITS:
        text = unit.read_text()
        # It wants to see the program, which is nowhere but where the units are installed.
        (tmp_path / unit.name).write_text(text.replace("/opt/archive-fleet/bin/worker", program))
    copies = sorted(tmp_path.iterdir())
    assert len(copies) == 3
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *copies], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
