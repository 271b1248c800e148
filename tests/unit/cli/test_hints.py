"""Commands in hints can be called as they stand, in the world of the demo too."""

from pathlib import Path

import click
import pytest

from worker.cli.main import cli
from worker.cli.opening import DemoAsked, as_called


@pytest.mark.parametrize(
    ("state", "option"), [(None, "--demo"), (Path("/srv/a demo"), "--demo-state '/srv/a demo'")]
)
def test_in_the_demos_world_every_command_of_a_hint_names_it(state, option):
    with click.Context(cli, obj=DemoAsked(state)):
        said = as_called("see: worker packages list, or run: worker recover --take-over 2")
    first, second = said.removeprefix("see: ").split(", or run: ")
    assert first.endswith(f"worker {option} packages list")
    assert second.endswith(f"worker {option} recover --take-over 2")


@pytest.mark.parametrize("text", ["no worker runs", "run: .venv/bin/worker status", "run: worker demo"])
def test_what_is_no_command_or_is_called_rightly_stays_as_it_is(text):
    with click.Context(cli, obj=DemoAsked(None)):
        assert as_called(text) == text


def test_in_the_real_world_nothing_is_changed():
    with click.Context(cli):
        assert as_called("see: worker packages list") == "see: worker packages list"
