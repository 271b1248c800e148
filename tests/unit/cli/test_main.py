"""The list of commands, which is shown without importing them."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from worker.cli.main import COMMANDS, cli


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_shown_for_a_command_is_its_own(name):
    command = cli.get_command(click.Context(cli), name)
    assert command.get_short_help_str(limit=200) == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(name):
    command = cli.get_command(click.Context(cli), name)
    leaves = command.commands.values() if isinstance(command, click.Group) else [command]
    assert [leaf.name for leaf in leaves if "Example" not in (leaf.help or "")] == []


def test_help_imports_neither_the_database_nor_the_telegram_library():
    script = (
        "import sys; from worker.cli.main import main; sys.argv = ['worker', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('heavy:', {'sqlalchemy', 'pyrogram', 'alembic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.endswith("heavy: set()\n"), done


@pytest.mark.parametrize("name", ["demo", "sandbox", "archives"])
def test_a_command_that_has_no_world_is_not_sent_into_the_demos(name):
    done = CliRunner().invoke(cli, ["--demo", name])
    assert (done.exit_code, f"--demo has no meaning for: worker {name}" in done.output) == (2, True)


def test_without_a_demo_the_option_says_in_one_line_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".worker" / "demo").mkdir(parents=True)
    for options, folder in ((["--demo"], ".worker/demo"), (["--demo-state", "mine"], "mine")):
        done = CliRunner().invoke(cli, [*options, "status"])
        again = "" if options == ["--demo"] else " --state mine"
        assert done.exit_code == 2
        assert done.output.startswith(f"worker: no demo has been run in {folder} — run: ")
        assert done.output.endswith(f"worker demo{again}\n")
        assert done.output.count("\n") == 1
