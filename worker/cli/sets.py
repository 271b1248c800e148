"""``worker sets``: what becomes of each archive."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from worker.cli.opening import as_called, on_database, opened, person, readable_errors, upgrade_embedded
from worker.domain.forming import EMPTY, PROTECTED
from worker.domain.split_plan import MIB
from worker.errors import UserError
from worker.plain_text import plain, to_json
from worker.status.set_reasons import why
from worker.status.wording import count_of, size
from worker.store.known_channels import find_channel
from worker.store.set_listing import list_sets, retry_set, show_set, skip_set

if TYPE_CHECKING:
    from worker.cli.opening import Opened
    from worker.store.database import Database
    from worker.store.set_listing import ListedPart, ListedSet

_STATES = ("collecting", "ready", "claimed", "published", "indexed", "duplicate", "failed", "skipped")
_WAITING = ("collecting", "ready", "failed")


@click.group()
def sets() -> None:
    """See what becomes of each archive, and why it waits; try one again, or leave it out."""


@sets.command("list")
@click.option("--state", "states", multiple=True, type=click.Choice(_STATES), help="Only these; repeatable.")
@click.option("--waiting", is_flag=True, help="Only what does not move by itself at once.")
@click.option("--channel", metavar="C", help="Only of this channel: id, @username or title.")
@click.option("--before", type=int, metavar="N", help="Go on before this set.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(
    *,
    states: tuple[str, ...],
    waiting: bool,
    channel: str | None,
    before: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """List archive sets, the newest first, each with its state and the reason for it.

    \b
    Examples:
      worker sets list
      worker sets list --waiting
      worker sets list --state failed --channel @printvault
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        chosen = states + (_WAITING if waiting else ())
        found = on_database(place, lambda db: _list(db, chosen, channel, before, limit))
        limit_of_one = _standard_limit(place)
        if as_json:
            click.echo(_json([_row(item, limit_of_one) for item in found]))
            return
        for item in found:
            words = f"{plain(item.name)} in {plain(item.channel)}: {why(item, limit_of_one)}"
            click.echo(f"{item.id:>8}  {item.state:<10}  {words}")
        if not found:
            click.echo("no such set", err=True)
        elif len(found) == limit:
            same = [f"--state {state} " for state in states] + ["--waiting "] * waiting
            same += [f'--channel "{plain(channel)}" '] if channel else []
            click.echo(as_called(f"more: worker sets list {''.join(same)}--before {found[-1].id}"), err=True)


@sets.command()
@click.argument("set_id", metavar="SET", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(*, set_id: int, as_json: bool) -> None:
    """Show a SET with its files and why it is where it is.

    \b
    Example: worker sets show 42
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found, parts = on_database(place, lambda db: show_set(db, set_id))
        if as_json:
            row = _row(found, _standard_limit(place))
            click.echo(_json({**row, "parts": [asdict(part) for part in parts]}))
            return
        _print(found, parts, _standard_limit(place))


@sets.command()
@click.argument("set_ids", metavar="SET...", type=int, nargs=-1, required=True)
def retry(*, set_ids: tuple[int, ...]) -> None:
    """Try each SET again at once, whatever it waited for: one that failed, was left out, or waits.

    \b
    Example: worker sets retry 42 43
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        for set_id in set_ids:
            before = on_database(place, partial(_retry, set_id))
            click.echo(f"set {set_id} ({plain(before.name)}) is next in line")


@sets.command()
@click.argument("set_ids", metavar="SET...", type=int, nargs=-1, required=True)
@click.option("--reason", metavar="TEXT", help="Why, for whoever asks later.")
def skip(*, set_ids: tuple[int, ...], reason: str | None) -> None:
    """Leave each SET out. It stays known, and ``retry`` takes it up again.

    \b
    Example: worker sets skip 42 --reason "broken upload"
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        told = f"left out by {person()}" + (f": {reason}" if reason else "")
        for set_id in set_ids:
            before = on_database(place, partial(_skip, set_id, told))
            click.echo(f"set {set_id} ({plain(before.name)}) is left out")


async def _list(
    database: Database, states: tuple[str, ...], channel: str | None, before: int | None, limit: int
) -> list[ListedSet]:
    channel_id = None if channel is None else (await find_channel(database, channel)).id
    return await list_sets(database, limit=limit, states=states, channel_id=channel_id, before=before)


async def _retry(set_id: int, database: Database) -> ListedSet:
    found, _ = await show_set(database, set_id)
    if found.state == "skipped" and found.reason == EMPTY:
        raise UserError(f"set {set_id} is an empty file", remedy="there is nothing to publish")
    if found.state == "skipped" and found.reason == PROTECTED:
        raise UserError(
            f"{found.channel} forbids copying", remedy="allow it for that channel: worker channels --help"
        )
    return await retry_set(database, set_id)


async def _skip(set_id: int, reason: str, database: Database) -> ListedSet:
    return await skip_set(database, set_id, reason)


def _standard_limit(place: Opened) -> int:
    return place.settings.transfer.standard_limit_mib * MIB


def _row(found: ListedSet, standard_limit: int) -> dict[str, Any]:
    return {**asdict(found), "why": why(found, standard_limit)}


def _print(found: ListedSet, parts: list[ListedPart], standard_limit: int) -> None:
    click.echo(f"set {found.id}: {plain(found.name)} in {plain(found.channel)}")
    click.echo(f"  {found.format}, {count_of(found.part_count, 'part')}, {size(found.total_size)}")
    click.echo(f"  {found.state}: {why(found, standard_limit)}")
    if found.attempts:
        click.echo(f"  {count_of(found.attempts, 'attempt')} failed")
    for part in parts:
        click.echo(f"  message {part.message_id}  {plain(part.file_name)}  {size(part.size)}")


def _json(document: Any) -> str:
    return to_json(document, default=lambda time: time.isoformat())
