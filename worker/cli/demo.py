"""``worker demo``: see the whole thing work."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from worker import log
from worker.cli.opening import database, on_database, opened, readable_errors
from worker.config.load import load
from worker.demo.elsewhere import set_stage, watch
from worker.demo.run import SEARCH, DemoResult, run_demo
from worker.errors import FleetError
from worker.pipeline.deps import Silent
from worker.status.wording import plain
from worker.store import migrations
from worker.store.embedded import open_cluster

if TYPE_CHECKING:
    from rich.progress import TaskID

    from worker.store.overview import SetOutcome

_STYLES = {
    "indexed": "green",
    "duplicate": "cyan",
    "failed": "red",
    "ready": "yellow",
    "collecting": "yellow",
    "skipped": "magenta",
}


class _Bars(Silent):
    """One line per set in flight."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        if set_name not in self._tasks:
            self._tasks[set_name] = self._progress.add_task(set_name, total=total, step=step)
        self._progress.update(self._tasks[set_name], completed=done, total=total, step=step)

    def set_ended(self, set_name: str, outcome: str) -> None:
        task = self._tasks.pop(set_name, None)
        if task is not None:
            self._progress.remove_task(task)
        self._progress.console.print(f"  {outcome:<10} {set_name}", highlight=False)


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the demo keeps its database and its Telegram.  [default: demo in the data folder]",
)
@click.pass_context
def demo(context: click.Context, *, as_json: bool, state: Path | None) -> None:
    """Run the main job on an embedded PostgreSQL and a loopback Telegram.

    It keeps to a folder of its own and touches nothing else. The commands below are for a fleet and a
    loopback Telegram that run by themselves, as in docker-compose.demo.yml.

    \b
    Examples:
      worker demo
      worker demo --json
    """
    if context.invoked_subcommand is not None:
        return
    with readable_errors():
        folder = (state or load().settings.data_dir / "demo").absolute()
        log.configure("warning")
        with open_cluster(folder) as address:
            migrations.upgrade(address)
            result = asyncio.run(_run(address, folder, quiet=as_json))
        if as_json:
            click.echo(json.dumps(_document(result), indent=2))
        else:
            _print(result)
            _print_what_next(folder)
        _refuse_unproven(result, str(folder))


_admin_port = click.option(
    "--admin-port", default=4431, show_default=True, help="The loopback Telegram's port for the admin API."
)


@demo.command("stage")
@_admin_port
def stage_command(*, admin_port: int) -> None:
    """Post the demo's archives in a running loopback Telegram, and log its accounts in.

    It has to see the loopback Telegram's own files, below the same path.

    \b
    Example: worker demo stage
    """
    with readable_errors(), opened() as place:
        stage = on_database(place, lambda db: set_stage(place.settings, db, admin_port))
        click.echo(f"{len(stage.samples)} archives are posted in {len(stage.sources)} channels.")


@demo.command("watch")
@_admin_port
@click.option("--minutes", default=15.0, show_default=True, help="When to give up.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def watch_command(*, admin_port: int, minutes: float, as_json: bool) -> None:
    """Wait until a running fleet has dealt with the demo's archives, and show the proof from the ledger.

    \b
    Example: worker demo watch
    """
    with readable_errors(), opened() as place:
        result = on_database(place, lambda db: watch(place.settings, db, admin_port, minutes * 60))
        if as_json:
            click.echo(json.dumps(_document(result), indent=2))
        else:
            _print(result)
            click.echo("\nThe fleet goes on. Look around: worker status, worker sets list")
        _refuse_unproven(result, "the logs")


def _refuse_unproven(result: DemoResult, where: str) -> None:
    if not result.is_proven:
        raise FleetError("the ledger disagrees", remedy=f"look at {where}, and please report this")


async def _run(address: str, folder: Path, *, quiet: bool) -> DemoResult:
    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    columns = (
        TextColumn("{task.fields[step]:<7}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.description}"),
    )
    async with database(address) as opened_database:
        with Progress(*columns, console=console, transient=True) as progress:
            return await run_demo(folder, opened_database, _Bars(progress), lambda what: _tell(console, what))


def _tell(console: Console, what: str) -> None:
    """Above the bars, or as a plain line where there are none."""
    if console.quiet:
        click.echo(what, err=True)
    else:
        console.print(f"  {what}", highlight=False)


def _document(result: DemoResult) -> dict[str, object]:
    return {
        "archives": len(result.outcomes),
        "published": result.published,
        "duplicates": result.duplicates,
        "waiting": [_reason(outcome) for outcome in result.in_state("collecting", "ready", "claimed")],
        "failed": [_reason(outcome) for outcome in result.in_state("failed")],
        "skipped": [_reason(outcome) for outcome in result.in_state("skipped")],
        "new": result.new,
        "split_parts": result.split_parts,
        "bytes_moved": result.bytes_moved,
        "bytes_avoided": result.bytes_avoided,
        "seconds": round(result.seconds, 2),
        "ledger": asdict(result.ledger),
    }


def _reason(outcome: SetOutcome) -> dict[str, str | None]:
    return {"archive": outcome.name, "channel": outcome.channel, "reason": outcome.reason}


def _print(result: DemoResult) -> None:
    # In a container's log there is no terminal whose width would be that of the reader's.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table("archive", "channel", "size", "what became of it", box=None, header_style="bold")
    for outcome in result.outcomes:
        style = _STYLES.get(outcome.state, "")
        size = f"{outcome.size / 1e6:.1f} MB"
        table.add_row(Text(outcome.name), Text(outcome.channel), size, Text(_fate(outcome), style=style))
    console.print(table)
    if result.bytes_moved is None:
        console.print(
            f"\n{result.new} archives seen, {result.published} published, {result.duplicates} duplicates:"
            f" {result.bytes_avoided / 1e6:.1f} MB not uploaded twice"
        )
    elif result.new:
        console.print(
            f"\n{result.new} archives seen, {result.published} published, {result.duplicates} duplicates:"
            f" {result.bytes_moved / 1e6:.1f} MB moved in {result.seconds:.1f} s,"
            f" {result.bytes_avoided / 1e6:.1f} MB avoided"
        )
    else:
        console.print("\nNothing to do: every archive was dealt with before.")
    console.print(f"\nWhich of them hold {SEARCH}? Among others:", highlight=False)
    for found in result.found:
        inside = ", ".join(plain(path) for path in found.paths)
        console.print(f"  {plain(found.package.name)}: {inside}", highlight=False)
    ledger = result.ledger
    console.print(
        f"\nThe server's own ledger: {ledger.unique_contents} contents belong at the destination,"
        f" {ledger.message_sets} are there whole; {ledger.doubled} doubled, {ledger.lost} lost,"
        f" {ledger.unexpected} unexpected."
    )


def _print_what_next(folder: Path) -> None:
    console = Console()
    console.print("\nRun it again, and there is nothing left to do. Look around:")
    # As it was called: after `make demo` that is a path, and nothing on PATH.
    program = sys.argv[0] if sys.argv[0].endswith("/worker") else "worker"
    for command in (f"packages search {SEARCH}", "sets list", "status"):
        console.print(f"  WORKER_DATA_DIR={folder} {program} {command}", soft_wrap=True, highlight=False)
    console.print(
        "Next: `worker doctor` for your own set-up, docs/guide.md for the way to your own channels."
    )


def _fate(outcome: SetOutcome) -> str:
    """One phrase: how it ended, as what, and what is special about it."""
    if outcome.package_id is None:
        return f"{outcome.state}: {outcome.reason}" if outcome.reason else outcome.state
    if outcome.state == "duplicate":
        return f"duplicate of package {outcome.package_id}"
    told = [f"{outcome.file_count} files"] if outcome.file_count else []
    if outcome.is_split:
        told.append(f"split into {outcome.message_count}")
    elif outcome.part_count > 1:
        told.append(f"{outcome.part_count} parts")
    told += outcome.marks or []
    return f"{outcome.state}, package {outcome.package_id}" + (f" ({', '.join(told)})" if told else "")
