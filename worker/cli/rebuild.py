"""``worker rebuild``: the index anew, from the destination alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from worker.cli.errand import do_errand, shown
from worker.cli.opening import Opened, on_database, opened, person, readable_errors, upgrade_embedded
from worker.cli.strangers import other_peoples
from worker.errors import UserError
from worker.fleet.asking import Wish
from worker.plain_text import plain, to_json
from worker.status.wording import count_of
from worker.store.known_channels import find_channel
from worker.store.verification import holding_channels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.store.database import Database


@click.command()
@click.option(
    "--channel",
    "named",
    multiple=True,
    metavar="C",
    help="A channel that holds packages: id, @username or title; repeatable.  [default: the destination]",
)
@click.option(
    "--accept-old-markers",
    "accept_old",
    is_flag=True,
    help="Take messages marked without a code for yours, once their bytes have been read and hashed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rebuild(*, named: tuple[str, ...], accept_old: bool, as_json: bool) -> None:
    """Make the database anew from the messages of the destination.

    For a database that was lost: log an account in, choose the destination, and run this. Every package is
    found again with its files and the documents it came from, so that nothing of it is downloaded once more.
    What the database knows already stays as it is. Listings and previews follow with the next run.

    A message is yours if its marker has a code that was made with your secret key. Markers of the first
    version (af1) have none: such a message counts if an account that is logged in here has sent it. In a
    channel that cannot be told; if only your own accounts could post there, give --accept-old-markers.

    \b
    Examples:
      worker rebuild
      worker rebuild --channel @library --channel 2400000003
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        channels = on_database(place, lambda db: _channels(db, named))
        reports = [(title, _rebuild(place, number, accept_old, quiet=as_json)) for number, title in channels]
        if as_json:
            rows = [{"channel": title, **report} for title, report in reports]
            click.echo(to_json({"channels": rows}))
        else:
            for title, report in reports:
                for line in _describe(title, report):
                    click.echo(line)
        raise SystemExit(1 if any(report["left_out_count"] for _, report in reports) else 0)


async def _channels(database: Database, named: tuple[str, ...]) -> list[tuple[int, str]]:
    if named:
        found = [await find_channel(database, name) for name in named]
        return [(channel.id, channel.title) for channel in found]
    holding = await holding_channels(database)
    if not holding:
        raise UserError("no destination channel is set", remedy="run: worker channels destination CHANNEL")
    return [(channel.id, channel.title) for channel in holding]


def _rebuild(place: Opened, channel_id: int, accept_old: bool, *, quiet: bool) -> dict[str, Any]:
    arguments = {"channel": channel_id, "accept_old": accept_old}
    wish = Wish("rebuild", [channel_id], lambda: arguments, person(), whole=True)
    with shown(quiet=quiet, of_bytes=False) as counter:
        return do_errand(place, wish, counter)


def _describe(title: str, report: dict[str, Any]) -> Iterator[str]:
    looked = f"{count_of(report['messages'], 'message')} read, {report['marked']:,} of them marked"
    yield f"{plain(title)}: {looked}"
    known = f" ({count_of(report['known'], 'message')} known before)" if report["known"] else ""
    yield f"  {count_of(report['packages'], 'package')} written down{known}"
    yield from other_peoples(report)
    for item in report["left_out"]:
        messages = ", ".join(map(str, item["messages"]))
        yield f"  left out: {plain(item['name'])} (message {messages}): {item['why']}"
    if report["left_out_count"] > len(report["left_out"]):
        yield f"  … and {report['left_out_count'] - len(report['left_out']):,} more"
