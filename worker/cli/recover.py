"""``worker recover``: what to run after a crash."""

from __future__ import annotations

import asyncio
import json

import click

from worker.cli.opening import opened, readable_errors, upgrade_embedded
from worker.cli.working import work
from worker.fleet.account import Mode


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--account", "phones", multiple=True, metavar="PHONE", help="Only this account; repeatable.")
def recover(*, as_json: bool, phones: tuple[str, ...]) -> None:
    """Put right what a crash left: dead claims, begun uploads, pending metadata, files.

    Safe beside a running fleet: accounts that another worker runs are left to it.

    \b
    Examples:
      worker recover
      worker recover --json
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        worked = asyncio.run(work(place, Mode(once=True, new_work=False), phones))
        if as_json:
            click.echo(json.dumps(worked.document(), indent=2))
        else:
            worked.print()
        raise SystemExit(worked.exit_code)
