"""The ``worker`` command: one group, one module per noun."""

from __future__ import annotations

import click

from worker import __version__
from worker.cli.db import db
from worker.cli.doctor import doctor


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="archive-fleet")
def cli() -> None:
    """Publish every archive of many Telegram channels exactly once.

    \b
    First look:        worker demo
    Is all well here?  worker doctor
    """


cli.add_command(db)
cli.add_command(doctor)


def main() -> None:
    """Run the command line."""
    cli(prog_name="worker")
