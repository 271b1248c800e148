"""The ``worker`` command: one group, one module per noun."""

from __future__ import annotations

import click

from worker import __version__
from worker.cli.archives import archives
from worker.cli.db import db
from worker.cli.demo import demo
from worker.cli.doctor import doctor
from worker.cli.run import recover, run
from worker.cli.sandbox import sandbox


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="archive-fleet")
def cli() -> None:
    """Publish every archive of many Telegram channels exactly once.

    \b
    First look:        worker demo
    Is all well here?  worker doctor
    """


for command in (demo, run, recover, archives, db, doctor, sandbox):
    cli.add_command(command)


def main() -> None:
    """Run the command line."""
    cli(prog_name="worker")
