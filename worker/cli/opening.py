"""What most commands begin with: settings, logs, a database, and errors a person can read."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import re
import shlex
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from worker import log
from worker.cli.calling import program, shown_path
from worker.cli.main import COMMANDS, WITHOUT_WORLD
from worker.config.load import Loaded, load
from worker.errors import FleetError, UserError
from worker.plain_text import plain
from worker.signals import leaving_in_order
from worker.store import migrations
from worker.store.address import parse_address
from worker.store.connect import check_server
from worker.store.database import Database
from worker.store.embedded import open_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from worker.config.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opened:
    """The settings in force, the address of the database, and the Telegram to talk to."""

    loaded: Loaded
    address: str
    # Telegram is there by itself; the demo's is started for whoever enters this.
    telegram: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
    # Where the log goes, if not to standard error.
    log: Path | None = None

    @property
    def settings(self) -> Settings:
        return self.loaded.settings


def fail(error: FleetError) -> None:
    """One line that says what and what to do, and the class's exit code."""
    click.echo(f"worker: {plain(as_called(log.redact_text(str(error))))}", err=True)
    sys.exit(error.exit_code)


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Turn expected failures into one line and an exit code."""
    try:
        yield
    except FleetError as error:
        fail(error)
    except KeyboardInterrupt:
        sys.exit(130)


@contextlib.contextmanager
def opened() -> Iterator[Opened]:
    """Read the settings, set up the logs, and have a server to talk to for the length of the block."""
    demo = demo_asked_for()
    if demo is not None:
        with _opened_demo(demo) as place:
            yield place
        return
    loaded = load()
    settings = loaded.settings
    log.configure(settings.log_level, settings.log_format)
    if settings.database_url is not None:
        address = settings.database_url.get_secret_value()
        parse_address(address)
        yield Opened(loaded, address)
        return
    with leaving_in_order(), open_cluster(settings.data_dir) as address:
        yield Opened(loaded, address)


@dataclass(frozen=True, slots=True)
class DemoAsked:
    """``worker --demo``: the folder that was named, or None for the usual one."""

    state: Path | None


def demo_asked_for() -> DemoAsked | None:
    """What stood before the command; None is the real world."""
    context = click.get_current_context(silent=True)
    return context.find_object(DemoAsked) if context is not None else None


def as_called(text: str) -> str:
    """The text with its commands as they have to be called from here: in the demo's world they name it."""
    asked = demo_asked_for()
    if asked is None:
        return text
    option = "--demo" if asked.state is None else f"--demo-state {shlex.quote(shown_path(asked.state))}"
    commands = "|".join(COMMANDS.keys() - WITHOUT_WORLD)
    # A path that ends in /worker is a command that is called rightly already.
    return re.sub(rf"(?<![\w./-])worker (?=(?:{commands})\b)", lambda _: f"{program()} {option} ", text)


@contextlib.contextmanager
def _opened_demo(asked: DemoAsked) -> Iterator[Opened]:
    # Only the demo needs its parts, and every other command would take longer to start.
    from worker.demo import world  # noqa: PLC0415
    from worker.demo.telegram import open_telegram  # noqa: PLC0415

    folder = world.demo_folder(asked.state)
    if not world.notes_file(folder).exists():
        option = "" if asked.state is None else f" --state {shlex.quote(shown_path(folder))}"
        where = shown_path(folder)
        what = f"the demo in {where} was stopped before its stage was set"
        if not world.log_file(folder).exists():
            what = f"no demo has been run in {where}"
        raise UserError(what, remedy=f"run: {program()} demo{option}")
    with leaving_in_order(), open_cluster(folder) as address, world.opened_log(folder) as stream:
        log.configure("info", "json", stream)
        settings, logged = world.demo_settings(folder), world.log_file(folder)
        yield Opened(settings, address, lambda: open_telegram(folder), logged)


def upgrade_embedded(place: Opened) -> None:
    """Nobody else looks after the schema of the embedded database."""
    if place.settings.database_url is None:
        migrations.upgrade(place.address)


def person() -> str:
    """Who gives this command, and on which host."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user that has no name.
        name = "somebody"
    return f"{name}@{socket.gethostname()}"


@contextlib.asynccontextmanager
async def database(address: str) -> AsyncIterator[Database]:
    """A checked database: reachable, of a known version, with our schema."""
    await check_server(address)
    opened_database = Database(address)
    try:
        await migrations.require_current(opened_database)
        yield opened_database
    finally:
        await opened_database.close()


def on_database(place: Opened, work: Callable[[Database], Awaitable[T]]) -> T:
    """What ``work`` finds out or does there, for commands that need nothing else."""

    async def run() -> T:
        async with database(place.address) as opened_database:
            return await work(opened_database)

    return asyncio.run(run())
