"""``worker channels``: where archives come from and where they go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import click

from worker.cli.channel_errands import discover_all, join_with_each
from worker.cli.opening import Opened, as_called, database, opened, readable_errors, upgrade_embedded
from worker.domain.channel_name import NamedBy, channel_name
from worker.plain_text import plain, to_json
from worker.store import roles
from worker.store.channels import make_destination, make_source
from worker.store.known_channels import find_channel, known_channels, look_up
from worker.store.watermarks import vouch_for_hidden

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.store.database import Database
    from worker.store.known_channels import KnownChannel

T = TypeVar("T")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_CHANNEL = click.argument("channel")
# Ids may begin with a minus sign, and are no options for that.
_NAMING = {"ignore_unknown_options": True}


@click.group()
def channels() -> None:
    """Choose the channels to read and the one to publish to."""


@channels.command("list")
@_JSON
def list_channels(*, as_json: bool) -> None:
    """List the channels that the accounts see, those in use first.

    \b
    Example: worker channels list
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_on_database(place, known_channels))
        if as_json:
            click.echo(to_json([_row(channel) for channel in found]))
            return
        for channel in found:
            click.echo(_line(channel))
        if not found:
            click.echo(as_called("no channel yet; accounts bring theirs along: worker accounts add PHONE"))


@channels.command()
@_JSON
def discover(*, as_json: bool) -> None:
    """Ask every account for its channels, archived ones and those in folders too.

    \b
    Example: worker channels discover
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(discover_all(place))
        if as_json:
            click.echo(to_json(found))
            return
        for item in found:
            click.echo(f"account {item['account']}: {item['channels']} channels")
        click.echo(as_called("see them with: worker channels list"))


@channels.command(context_settings=_NAMING)
@_CHANNEL
@click.option("--account", "phones", multiple=True, metavar="PHONE", help="Join with this account only.")
@click.option("--category", help="What its archives are about; becomes a tag.")
@click.option(
    "--allow-protected/--skip-protected",
    "allow_protected",
    default=None,
    help="Whether to archive what its owner has protected from copying.  [default: skip]",
)
@click.option(
    "--copy/--no-copy",
    "copy_mode",
    default=None,
    help="Whether to send its files on as they are, without uploading them.  [default: no-copy]",
)
def add(
    *,
    channel: str,
    phones: tuple[str, ...],
    category: str | None,
    allow_protected: bool | None,
    copy_mode: bool | None,
) -> None:
    """Read CHANNEL from now on: its id, @name, t.me link or exact title, or an invitation.

    A channel that no account is in yet is joined by every account, or by those named. Added again, its
    options are changed and nothing else.

    \b
    Examples:
      worker channels add 2400000001
      worker channels add @printvault --category models --copy
      worker channels add https://t.me/+AbCdEf --account +49301234567
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_add(place, channel, phones))

        async def decide(db: Database) -> int:
            await make_source(db, found.telegram_id)
            if category is not None:
                await roles.set_category(db, found.telegram_id, category.strip() or None)
            again = await roles.take_up(db, found.telegram_id)
            return again + await roles.set_policy(
                db, found.telegram_id, allow_protected=allow_protected, copy_mode=copy_mode
            )

        again = asyncio.run(_on_database(place, decide))
        line = f"; {again} archives that were skipped are in line again" if again else ""
        click.echo(f"{plain(found.title)} is read from now on, by {_accounts(found.readers)}{line}.")
        for said in _what_was_set(category, allow_protected, copy_mode):
            click.echo(said)


@channels.command(context_settings=_NAMING)
@_CHANNEL
def remove(*, channel: str) -> None:
    """Read CHANNEL no more. What was published stays; what waits is left out until it is added again.

    \b
    Example: worker channels remove @printvault
    """
    _decide(channel, roles.remove_source, "{} is no longer read.")


@channels.command(context_settings=_NAMING)
@_CHANNEL
def enable(*, channel: str) -> None:
    """Go on with a source that was disabled.

    \b
    Example: worker channels enable @printvault
    """
    _decide(channel, lambda db, id_: roles.enable(db, id_, enabled=True), "{} is read again.")


@channels.command(context_settings=_NAMING)
@_CHANNEL
def disable(*, channel: str) -> None:
    """Let a source rest: it is neither read nor worked on, and nothing about it is forgotten.

    \b
    Example: worker channels disable @printvault
    """
    _decide(channel, lambda db, id_: roles.enable(db, id_, enabled=False), "{} rests.")


@channels.command(context_settings=_NAMING)
@_CHANNEL
@click.argument("name", required=False)
def category(*, channel: str, name: str | None) -> None:
    """Say what CHANNEL's archives are about; without NAME, take that back.

    \b
    Example: worker channels category @printvault models
    """
    wanted = (name or "").strip() or None
    done = f"{{}} is about {plain(wanted)}." if wanted else "{} has no category."
    _decide(channel, lambda db, id_: roles.set_category(db, id_, wanted), done)


@channels.command(context_settings=_NAMING)
@_CHANNEL
@click.option(
    "--nothing-hidden",
    is_flag=True,
    help="Vouch that this fleet has published nothing there that its accounts do not see.",
)
def destination(*, channel: str, nothing_hidden: bool) -> None:
    """Publish to CHANNEL, a channel or supergroup, from now on. What is elsewhere stays there.

    Nothing is published before an account that sees all of it has looked for what was published there before,
    by another database or after a backup was made. Where no account of the fleet sees what was posted before
    it joined, you can vouch that nothing of this fleet is among it.

    \b
    Examples:
      worker channels destination 2400000003
      worker channels destination 2400000003 --nothing-hidden
    """

    async def choose(db: Database, telegram_id: int) -> None:
        await make_destination(db, telegram_id)
        if nothing_hidden:
            await vouch_for_hidden(db, telegram_id)

    vouched = " What its accounts do not see there is taken to hold nothing of this fleet."
    found = _decide(channel, choose, f"New archives go to {{}}.{vouched if nothing_hidden else ''}")
    if not found.posters:
        click.echo("No account may post there yet: make one an administrator.", err=True)


def _what_was_set(category: str | None, allow_protected: bool | None, copy_mode: bool | None) -> list[str]:
    """The options that were given, as sentences."""
    said = []
    if category is not None:
        named = category.strip()
        said.append(f"Its archives are about {plain(named)}." if named else "It has no category.")
    if copy_mode is not None:
        how = "sent on as they are, without uploading them" if copy_mode else "uploaded"
        said.append(f"Its files are {how}.")
    if allow_protected is not None:
        said.append(f"What its owner has protected is {'archived' if allow_protected else 'skipped'}.")
    return said


def _decide(channel: str, do: Callable[[Database, int], Awaitable[Any]], done: str) -> KnownChannel:
    with readable_errors(), opened() as place:
        upgrade_embedded(place)

        async def work(db: Database) -> KnownChannel:
            found = await find_channel(db, channel)
            await do(db, found.telegram_id)
            return found

        found = asyncio.run(_on_database(place, work))
        click.echo(done.replace("{}", plain(found.title)))
        return found


async def _add(place: Opened, channel: str, phones: tuple[str, ...]) -> KnownChannel:
    name = channel_name(channel)
    known = await _on_database(place, lambda db: look_up(db, name))
    if name.by in (NamedBy.USERNAME, NamedBy.INVITE) and (phones or known is None or not known.readers):
        telegram_id = await join_with_each(place, name, phones)
        return await _on_database(place, lambda db: find_channel(db, str(telegram_id)))
    return await _on_database(place, lambda db: find_channel(db, channel))


async def _on_database(place: Opened, work: Callable[[Database], Awaitable[T]]) -> T:
    async with database(place.address) as opened_database:
        return await work(opened_database)


def _accounts(count: int) -> str:
    return "1 account" if count == 1 else f"{count} accounts"


def _line(channel: KnownChannel) -> str:
    notes = [f"@{channel.username}"] if channel.username else []
    notes += [channel.kind] if channel.kind != "channel" else []
    notes += [f"{channel.topics} topics"] if channel.topics else []
    notes += [f"category {channel.category}"] if channel.category else []
    if channel.is_protected:
        notes.append("protected, archived all the same" if channel.allow_protected else "protected")
    notes += ["copied"] if channel.copy_mode else []
    notes += ["rests"] if channel.role == "source" and not channel.is_enabled else []
    notes += ["no account reads it"] if channel.role == "source" and not channel.readers else []
    words = plain(f"{channel.title}  {', '.join(notes)}".rstrip())
    return f"{channel.telegram_id:>13}  {channel.role:<11}  {words}".rstrip()


def _row(channel: KnownChannel) -> dict[str, object]:
    return {
        "id": channel.telegram_id,
        "title": channel.title,
        "username": channel.username,
        "kind": channel.kind,
        "role": channel.role,
        "enabled": channel.is_enabled,
        "category": channel.category,
        "protected": channel.is_protected,
        "allow_protected": channel.allow_protected,
        "copy_mode": channel.copy_mode,
        "readers": channel.readers,
        "posters": channel.posters,
        "topics": channel.topics,
    }
