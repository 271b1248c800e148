"""``worker verify``: is the library what the database says it is?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from worker.cli.errand import do_errand, shown
from worker.cli.opening import (
    Opened,
    as_called,
    on_database,
    opened,
    person,
    readable_errors,
    upgrade_embedded,
)
from worker.cli.strangers import other_peoples
from worker.errors import UserError
from worker.fleet.asking import Wish
from worker.plain_text import plain, to_json
from worker.status.wording import count_of, size
from worker.store.verification import HoldingChannel, holding_channels

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command()
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N packages, chosen by chance.")
@click.option("--full", is_flag=True, help="Read every byte and compare its hash; as long as a download.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(*, sample: int | None, full: bool, as_json: bool) -> None:
    """Compare the destination with the database, both ways. Nothing is changed.

    Every package's messages have to be there with the right file and marker; every marked message of ours
    has to belong to a package. Exit code 1 if anything is off. Messages that only look like ours are named,
    and are nobody's fault.

    \b
    Examples:
      worker verify
      worker verify --sample 100 --full
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        channels = on_database(place, holding_channels)
        if not channels:
            raise UserError(
                "no destination channel is set", remedy="run: worker channels destination CHANNEL"
            )
        reports = [(channel, _verify(place, channel, sample, full, quiet=as_json)) for channel in channels]
        if as_json:
            rows = [{"channel": channel.title, **report} for channel, report in reports]
            click.echo(to_json({"channels": rows}))
        else:
            for channel, report in reports:
                for line in _describe(channel, report):
                    click.echo(line)
        raise SystemExit(1 if any(report["counts"] for _, report in reports) else 0)


def _verify(
    place: Opened, channel: HoldingChannel, sample: int | None, full: bool, *, quiet: bool
) -> dict[str, Any]:
    arguments = {"channel": channel.id, "packages": channel.packages, "sample": sample, "full": full}
    wish = Wish("verify", [channel.id], lambda: arguments, person(), whole=True)
    with shown(quiet=quiet, of_bytes=False) as counter:
        return do_errand(place, wish, counter)


def _describe(channel: HoldingChannel, report: dict[str, Any]) -> Iterator[str]:
    looked = f"{count_of(report['packages'], 'package')} in {count_of(report['messages'], 'message')}"
    read = f", {size(report['bytes_read'])} read" if report["bytes_read"] else ""
    marked = count_of(report["marked"], "marked message")
    yield f"{plain(channel.title)}: {looked} and {marked} looked at{read}"
    for finding in report["findings"]:
        where = f"message {finding['message']}" if finding["message"] else ""
        whose = f"package {finding['package']}" if finding["package"] else ""
        who = " of ".join(filter(None, (where, whose)))
        yield f"  {finding['kind']}: {who} ({plain(finding['name'])}): {finding['what']}"
    yield from other_peoples(report)
    total = sum(report["counts"].values())
    if total > len(report["findings"]):
        yield f"  … and {total - len(report['findings']):,} more"
    yield as_called("  put it right with: worker recover") if total else "  all is as it should be"
