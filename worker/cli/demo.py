"""``worker demo``: see the whole thing work."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from worker import log
from worker.cli.calling import program, shown_path
from worker.cli.demo_display import display
from worker.cli.demo_elsewhere import stage, watch
from worker.cli.demo_report import document, printed, report, what_next
from worker.cli.fitting import wrapped
from worker.cli.opening import database, readable_errors
from worker.cli.terminal import open_console
from worker.demo.run import DemoResult, DemoStoppedError, run_demo
from worker.demo.world import demo_folder, is_usual, log_file, opened_log, sole_demo
from worker.plain_text import to_json
from worker.signals import leaving_in_order
from worker.store import migrations
from worker.store.embedded import open_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.cli.demo_display import Lines, Scene


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the demo keeps its database and its Telegram.  [default: .worker/demo here, if `make demo`"
    " made it; else demo in the data folder]",
)
@click.pass_context
def demo(context: click.Context, *, as_json: bool, state: Path | None) -> None:
    """Run the main job on an embedded PostgreSQL and a loopback Telegram.

    It keeps to a folder of its own and touches nothing else. Run it again, and there is nothing left to do.
    After it, every command works in its world with `worker --demo`. The commands below are for a fleet and a
    loopback Telegram that run by themselves, as in docker-compose.demo.yml.

    \b
    Examples:
      worker demo
      worker demo --json | jq .ledger
      worker --demo status
      worker --demo packages list
      worker --demo fetch 1 -o restored
    """
    if context.invoked_subcommand is not None:
        return
    with readable_errors(), leaving_in_order():
        folder = demo_folder(state)
        console = open_console(stderr=True)
        result, stopped = None, list[str]()
        with display(console, only_told=as_json) as audience:
            try:
                result = _perform(folder, audience)
            except (KeyboardInterrupt, DemoStoppedError):
                stopped = list(_stopped(audience, folder, console.width))
        if result is None:
            for line in stopped:
                click.echo(line, err=True)
            sys.exit(130)
        if as_json:
            click.echo(to_json(document(result)))
        else:
            printed(
                lambda width: report(result, width),
                lambda width: what_next(_commands(result, folder), shown_path(log_file(folder)), width),
            )
        result.require_proof(str(folder))


demo.add_command(stage)
demo.add_command(watch)


def _perform(folder: Path, audience: Scene | Lines) -> DemoResult:
    audience.act("starting the database")
    with open_cluster(folder) as address, sole_demo(folder), opened_log(folder) as stream:
        log.configure("info", "json", stream)
        migrations.upgrade(address)
        return asyncio.run(_run(address, folder, audience))


async def _run(address: str, folder: Path, audience: Scene | Lines) -> DemoResult:
    async with database(address) as opened_database:
        return await run_demo(folder, opened_database, audience)


def _stopped(audience: Scene | Lines, folder: Path, width: int) -> Iterator[str]:
    """What was kept, and how to go on."""
    so_far = f"{audience.done} of {audience.of} archives are dealt with, and " if audience.of else ""
    # The path in one piece, however long it is.
    yield from wrapped(f"Stopped: {so_far}all that was done is kept in", width)
    yield f"  {shown_path(folder)}"
    option = "" if is_usual(folder) else f" --state {shlex.quote(shown_path(folder))}"
    yield "Go on with:"
    yield f"  {program()} demo{option}"


def _commands(result: DemoResult, folder: Path) -> list[str]:
    """Three that work as they stand, from the folder in which this was called."""
    usual = is_usual(folder)
    called = f"{program()} " + ("--demo" if usual else f"--demo-state {shlex.quote(shown_path(folder))}")
    # One that was split comes back in one piece.
    published = result.in_state("indexed", "published")
    chosen = max(published, key=lambda outcome: outcome.is_split, default=None)
    commands = [f"{called} status", f"{called} packages list"]
    if chosen is not None:
        commands.append(f"{called} fetch {chosen.package_id} -o {_unused_folder()}")
    return commands


def _unused_folder() -> str:
    """A second run's command should work beside the first one's."""
    number, name = 1, "restored"
    while Path(name).exists():
        number += 1
        name = f"restored-{number}"
    return name
