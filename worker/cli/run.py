"""``worker run``: the fleet's work on this host."""

from __future__ import annotations

import asyncio

import click

from worker.cli.calling import shown_path
from worker.cli.opening import opened, readable_errors, upgrade_embedded
from worker.cli.working import work
from worker.fleet.account import Mode


@click.command()
@click.option("--once", is_flag=True, help="End when nothing is claimable now, and say what waits and why.")
@click.option("--account", "phones", multiple=True, metavar="PHONE", help="Only this account; repeatable.")
def run(*, once: bool, phones: tuple[str, ...]) -> None:
    """Work: scan the sources and publish what is new, with every account at once.

    The first Ctrl-C or SIGTERM lets running sets finish, the second one ends them at once. Nothing is lost.

    \b
    Examples:
      worker run
      worker run --once
      worker run --account +10000000001
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        if place.log is not None:
            click.echo(f"the log goes to {shown_path(place.log)}", err=True)
        worked = asyncio.run(work(place, Mode(once=once), phones))
        worked.print()
        raise SystemExit(worked.exit_code)
