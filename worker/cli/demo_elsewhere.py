"""``worker demo stage`` and ``worker demo watch``: the demo's archives for a fleet that runs by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from worker.cli.demo_report import document, printed, report
from worker.cli.opening import on_database, opened, readable_errors
from worker.demo import elsewhere
from worker.plain_text import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

_admin_port = click.option(
    "--admin-port", default=4431, show_default=True, help="The loopback Telegram's port for the admin API."
)


@click.command()
@_admin_port
def stage(*, admin_port: int) -> None:
    """Post the demo's archives in a running loopback Telegram, and log its accounts in.

    It has to see the loopback Telegram's own files, below the same path.

    \b
    Example: worker demo stage
    """
    with readable_errors(), opened() as place:
        built = on_database(place, lambda db: elsewhere.set_stage(place.settings, db, admin_port))
        click.echo(f"{len(built.samples)} archives are posted in {len(built.sources)} channels.")


@click.command()
@_admin_port
@click.option("--minutes", default=15.0, show_default=True, help="When to give up.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def watch(*, admin_port: int, minutes: float, as_json: bool) -> None:
    """Wait until a running fleet has dealt with the demo's archives, and show the proof from the ledger.

    \b
    Example: worker demo watch
    """
    with readable_errors(), opened() as place:
        result = on_database(place, lambda db: elsewhere.watch(place.settings, db, admin_port, minutes * 60))
        if as_json:
            click.echo(to_json(document(result)))
        else:
            printed(lambda width: report(result, width), lambda _: _what_next())
        result.require_proof("the logs")


def _what_next() -> Iterator[Text]:
    yield Text()
    yield Text("The fleet goes on. Look around: worker status, worker sets list")
