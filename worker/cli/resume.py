"""``worker resume``: go on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from worker.cli.opening import Opened, as_called, database, opened, readable_errors, upgrade_embedded
from worker.cli.paused_scope import Scope, find_scope
from worker.store.pauses import PauseStore

if TYPE_CHECKING:
    from worker.domain.pauses import Pause


@dataclass(frozen=True, slots=True)
class _Resumed:
    scope: Scope
    ended: int
    left: list[Pause]


@click.command()
@click.option("--account", metavar="A", help="Only this account: phone, @username, name or number.")
@click.option("--channel", metavar="C", help="Only this channel: id, @username or title.")
def resume(*, account: str | None, channel: str | None) -> None:
    """End a pause: the fleet goes on at once.

    Without options every pause is ended, those of single accounts and channels too.

    \b
    Examples:
      worker resume
      worker resume --account +10000000001
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        done = asyncio.run(_resume(place, account, channel))
        click.echo(f"{done.scope.what} {'goes on' if done.ended else 'was not paused'}")
        if still := _still_covering(done):
            click.echo(as_called(f"still paused: {still}; end every pause with: worker resume"))


async def _resume(place: Opened, account: str | None, channel: str | None) -> _Resumed:
    async with database(place.address) as fleet:
        scope = await find_scope(fleet, account, channel)
        store = PauseStore(fleet)
        ended = await store.resume(account=scope.account, channel=scope.channel)
        return _Resumed(scope, ended, list(await store.pauses()))


def _still_covering(done: _Resumed) -> str:
    """A wider pause that keeps what was resumed from going on."""
    for pause in done.left:
        if pause.account in {None, done.scope.account} and pause.channel in {None, done.scope.channel}:
            if pause.account is None and pause.channel is None:
                return "the whole fleet"
            return "the account" if pause.channel is None else "the channel"
    return ""
