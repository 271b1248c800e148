"""``worker channels``: where archives come from and where they go."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, TypeVar

import click

from worker.cli.opening import Opened, database, opened, readable_errors, upgrade_embedded
from worker.store.channels import make_destination, make_source
from worker.store.known_channels import find_channel, known_channels

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.store.database import Database
    from worker.store.known_channels import KnownChannel

T = TypeVar("T")


@click.group()
def channels() -> None:
    """Choose the channels to read and the one to publish to."""


@channels.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_channels(*, as_json: bool) -> None:
    """List the channels that the accounts see; each run looks for new ones.

    \b
    Example: worker channels list
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_on_database(place, known_channels))
        if as_json:
            click.echo(json.dumps([_row(channel) for channel in found], indent=2))
            return
        for channel in found:
            name = f"@{channel.username}" if channel.username else ""
            click.echo(f"{channel.telegram_id:>13}  {channel.role:<11}  {channel.title}  {name}".rstrip())
        if not found:
            click.echo("no channel yet; accounts bring theirs along: worker accounts add PHONE")


@channels.command()
@click.argument("channel")
def add(*, channel: str) -> None:
    """Read CHANNEL (its id, @name or exact title) from now on.

    \b
    Examples:
      worker channels add 2400000001
      worker channels add @printvault
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_on_database(place, lambda db: _choose(db, channel, make_source)))
        click.echo(f"{found.title} is read from now on.")


@channels.command()
@click.argument("channel")
def destination(*, channel: str) -> None:
    """Publish to CHANNEL (its id, @name or exact title) from now on. What is elsewhere stays there.

    \b
    Example: worker channels destination 2400000003
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_on_database(place, lambda db: _choose(db, channel, make_destination)))
        click.echo(f"New archives go to {found.title}.")


async def _choose(
    opened_database: Database, name: str, make: Callable[[Database, int], Awaitable[None]]
) -> KnownChannel:
    found = await find_channel(opened_database, name)
    await make(opened_database, found.telegram_id)
    return found


async def _on_database(place: Opened, work: Callable[[Database], Awaitable[T]]) -> T:
    async with database(place.address) as opened_database:
        return await work(opened_database)


def _row(channel: KnownChannel) -> dict[str, object]:
    return {
        "id": channel.telegram_id,
        "title": channel.title,
        "username": channel.username,
        "kind": channel.kind,
        "role": channel.role,
    }
