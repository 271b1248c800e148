"""``worker status``: the fleet at a glance, as a line, as JSON, or kept up to date on the screen."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import click
from rich.live import Live

from worker.cli.opening import Opened, database, opened, readable_errors, upgrade_embedded
from worker.cli.status_view import compact_line, full_view, out_of_date
from worker.cli.terminal import open_console
from worker.errors import RetryableError, UserError
from worker.plain_text import to_json
from worker.status.document import to_document
from worker.status.read import read_status

if TYPE_CHECKING:
    from worker.status.model import FleetStatus
    from worker.store.database import Database

_REFRESH_SECONDS = 1.0


@click.command()
@click.option("--compact", is_flag=True, help="One line.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; docs/status-json.md describes it.")
@click.option("--watch", is_flag=True, help="Keep it on the screen and up to date until Ctrl-C.")
def status(*, compact: bool, as_json: bool, watch: bool) -> None:
    """Show what the fleet is doing, what waits and why.

    \b
    Examples:
      worker status
      worker status --watch
      worker status --json | jq '.rate_limits.active_waits'
    """
    with readable_errors():
        if compact + as_json + watch > 1:
            raise UserError("--compact, --json and --watch exclude each other", remedy="give one of them")
        with opened() as place:
            upgrade_embedded(place)
            if watch:
                # Ctrl-C is how a person leaves, not something that went wrong.
                with contextlib.suppress(KeyboardInterrupt):
                    asyncio.run(_watch(place))
                return
            found = asyncio.run(_once(place))
            if as_json:
                click.echo(to_json(to_document(found)))
            elif compact:
                click.echo(compact_line(found))
            else:
                open_console(highlight=False).print(full_view(found))


async def _once(place: Opened) -> FleetStatus:
    async with database(place.address) as fleet:
        return await _read(place, fleet)


async def _read(place: Opened, fleet: Database) -> FleetStatus:
    return await read_status(fleet, silent_after=place.settings.lease.lease_secs)


async def _watch(place: Opened) -> None:
    console = open_console(highlight=False)
    async with database(place.address) as fleet:
        view = shown = full_view(await _read(place, fleet))
        with Live(shown, console=console, auto_refresh=False, screen=console.is_terminal) as live:
            while True:
                live.update(shown, refresh=True)
                await asyncio.sleep(_REFRESH_SECONDS)
                try:
                    view = shown = full_view(await _read(place, fleet))
                except RetryableError as error:
                    shown = out_of_date(view, str(error))
