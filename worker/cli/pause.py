"""``worker pause``: nothing new is begun."""

from __future__ import annotations

import asyncio
import re

import click

from worker.cli.opening import Opened, as_called, database, opened, person, readable_errors, upgrade_embedded
from worker.cli.paused_scope import Scope, find_scope
from worker.errors import UserError
from worker.status.wording import duration
from worker.store.pauses import PauseStore

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(?:\d+[smhd])+")
_LONGEST_DAYS = 365


@click.command()
@click.option("--account", metavar="A", help="Only this account: phone, @username, name or number.")
@click.option("--channel", metavar="C", help="Only this channel: id, @username or title.")
@click.option("--for", "span", metavar="TIME", help="End by itself after 45m, 2h, 1h30m, 1d.")
def pause(*, account: str | None, channel: str | None, span: str | None) -> None:
    """Let the fleet, an account or a channel rest: nothing new is begun.

    Takes effect before the next page and the next set, in every process; what is under way is finished.

    \b
    Examples:
      worker pause
      worker pause --account +10000000001 --for 2h
      worker pause --channel @archives
    """
    with readable_errors():
        seconds = None if span is None else parse_span(span)
        with opened() as place:
            upgrade_embedded(place)
            scope = asyncio.run(_pause(place, account, channel, seconds))
        until = as_called("until: worker resume") if seconds is None else f"for {duration(seconds)}"
        click.echo(f"{scope.what} is paused {until}")


async def _pause(place: Opened, account: str | None, channel: str | None, seconds: float | None) -> Scope:
    async with database(place.address) as fleet:
        scope = await find_scope(fleet, account, channel)
        await PauseStore(fleet).pause(
            account=scope.account, channel=scope.channel, seconds=seconds, by=person()
        )
        return scope


def parse_span(text: str) -> float:
    """Seconds of ``45m``, ``2h``, ``1h30m``."""
    compact = text.replace(" ", "").lower()
    seconds = 0
    if _SPAN.fullmatch(compact):
        seconds = sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", compact))
    if not 0 < seconds <= _LONGEST_DAYS * 86_400:
        raise UserError(f"{text!r} is not a time to pause for", remedy="write 45m, 2h, 1h30m or 1d")
    return float(seconds)
