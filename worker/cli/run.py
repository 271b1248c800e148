"""``worker run`` and ``worker recover``: the fleet's work on this host."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import click

from worker.cli.opening import Opened, database, opened, readable_errors
from worker.fleet.account import Mode, Report
from worker.fleet.process import open_process
from worker.fleet.scheduler import run_fleet
from worker.store import migrations
from worker.store.overview import WaitingSet, count_sets, waiting_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

_GOOD = {"finished", "stopped", "elsewhere"}


@click.command()
@click.option("--once", is_flag=True, help="End when nothing is claimable now, and say what waits and why.")
@click.option("--account", "phones", multiple=True, metavar="PHONE", help="Only this account; repeatable.")
def run(*, once: bool, phones: tuple[str, ...]) -> None:
    """Work: scan the sources and publish what is new, with every account at once.

    The first Ctrl-C or SIGTERM lets running sets finish, the second one ends them at once. Nothing is lost.

    \b
    Examples:
      worker run
      worker run --once
      worker run --account +10000000001
    """
    with readable_errors(), opened() as place:
        _upgrade_embedded(place)
        reports, counts, waiting = asyncio.run(_run(place, Mode(once=once), phones))
        _print(reports, counts, waiting)
        raise SystemExit(0 if all(report.outcome in _GOOD for report in reports) else 1)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--account", "phones", multiple=True, metavar="PHONE", help="Only this account; repeatable.")
def recover(*, as_json: bool, phones: tuple[str, ...]) -> None:
    """Put right what a crash left: dead claims, begun uploads, pending metadata, files on the disk.

    Safe beside a running fleet: accounts that another worker runs are left to it.

    \b
    Examples:
      worker recover
      worker recover --json
    """
    with readable_errors(), opened() as place:
        _upgrade_embedded(place)
        mode = Mode(once=True, new_work=False)
        reports, counts, waiting = asyncio.run(_run(place, mode, phones))
        if as_json:
            click.echo(json.dumps(_document(reports, counts, waiting), indent=2))
        else:
            _print(reports, counts, waiting)
        raise SystemExit(0 if all(report.outcome in _GOOD for report in reports) else 1)


def _upgrade_embedded(place: Opened) -> None:
    if place.settings.database_url is None:
        # Nobody else looks after the embedded database.
        migrations.upgrade(place.address)


async def _run(
    place: Opened, mode: Mode, phones: Sequence[str]
) -> tuple[list[Report], dict[str, int], list[WaitingSet]]:
    async with database(place.address) as opened_database:
        async with open_process(place.settings, opened_database) as process:
            reports = await run_fleet(process, mode, phones)
        return reports, await count_sets(opened_database), await waiting_sets(opened_database)


def _document(reports: list[Report], counts: dict[str, int], waiting: list[WaitingSet]) -> dict[str, object]:
    return {
        "accounts": [
            {
                "account": report.account_id,
                "outcome": report.outcome,
                "reason": report.reason,
                "intents_finished": report.intents_finished,
                "metadata_completed": report.metadata_completed,
            }
            for report in reports
        ],
        "sets": counts,
        "waiting": [
            {"set": item.set_id, "name": item.name, "state": item.state, "reason": item.reason}
            for item in waiting
        ],
    }


def _print(reports: list[Report], counts: dict[str, int], waiting: list[WaitingSet]) -> None:
    for report in reports:
        done = []
        if report.intents_finished:
            done.append(f"{report.intents_finished} begun uploads finished")
        if report.metadata_completed:
            done.append(f"{report.metadata_completed} listings completed")
        detail = "; ".join([*done, *([report.reason] if report.reason else [])])
        click.echo(f"account {report.account_id}: {report.outcome}{f' ({detail})' if detail else ''}")
    click.echo("sets: " + (", ".join(f"{n} {state}" for state, n in sorted(counts.items())) or "none"))
    for item in waiting:
        when = f" for {item.seconds:.0f} s" if item.seconds else ""
        click.echo(f"  {item.name} in {item.channel}: {item.state}{when} — {item.reason or 'next in line'}")
