"""The list of commands, which is shown without importing them."""

import subprocess
import sys

import click
import pytest

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
