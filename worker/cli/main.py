"""The ``worker`` command: one group, one module per noun."""

from __future__ import annotations

import gc
import importlib
import resource
from pathlib import Path

import click

from worker import __version__
from worker.plain_text import guard_streams
from worker.release import commit

# Each command's module is imported when it is asked for: the Telegram library alone takes a second. The
# lines are those of the commands themselves; a test compares them.
COMMANDS = {
    "demo": "Run the main job on an embedded PostgreSQL and a loopback Telegram.",
    "run": "Work: scan the sources and publish what is new, with every account at once.",
    "status": "Show what the fleet is doing, what waits and why.",
    "pause": "Let the fleet, an account or a channel rest: nothing new is begun.",
    "resume": "End a pause: the fleet goes on at once.",
    "recover": "Put right what a crash left: dead claims, begun uploads, pending metadata, files.",
    "accounts": "Log accounts in and see how they stand.",
    "channels": "Choose the channels to read and the one to publish to.",
    "packages": "See and search what has been published.",
    "sets": "See what becomes of each archive, and why it waits; try one again, or leave it out.",
    "fetch": "Restore the original files of PACKAGE (its number or content hash) and check them.",
    "verify": "Compare the destination with the database, both ways.",
    "rebuild": "Make the database anew from the messages of the destination.",
    "archives": "Look at archives on disk the way the fleet does.",
    "db": "Set up, upgrade and look at the database.",
    "doctor": "Check whether the fleet could run here, and print every setting and where it came from.",
    "sandbox": "Run a real MTProto server on 127.0.0.1 until SIGTERM.",
}
# They read no settings and open no database.
WITHOUT_WORLD = {"demo", "archives", "sandbox"}


class LazyCommands(click.Group):
    """A group that knows its commands by name and imports ``worker.cli.<name>`` on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        return _load(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load(name: str) -> click.Command:
    """Import a command's module without looking for garbage meanwhile.

    It makes many objects and hardly any garbage: a fifth of the time of ``worker status`` was spent looking.
    """
    gc.disable()
    try:
        command: click.Command = getattr(importlib.import_module(f"worker.cli.{name}"), name)
    except KeyboardInterrupt:
        # It takes a second or two, and click would call it a failure.
        raise SystemExit(130) from None
    finally:
        gc.freeze()
        gc.enable()
    return command


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's
    # Asked for only here: in a checkout it is git that answers.
    if value and not ctx.resilient_parsing:
        click.echo(f"archive-fleet {__version__} ({commit()})")
        ctx.exit()


@click.group(
    cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and its commit, and exit.",
)
@click.option("--demo", is_flag=True, help="Let COMMAND work in the world of the last `worker demo`.")
@click.option(
    "--demo-state",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The same, for a demo that was run with --state DIR.",
)
@click.pass_context
def cli(ctx: click.Context, *, demo: bool, demo_state: Path | None) -> None:
    """Publish every archive of many Telegram channels exactly once.

    \b
    First look:        worker demo, then: worker --demo status
    Is all well here?  worker doctor
    What is going on?  worker status
    """
    if not demo and demo_state is None:
        return
    if ctx.invoked_subcommand in WITHOUT_WORLD:
        raise click.UsageError(f"--demo has no meaning for: worker {ctx.invoked_subcommand}")
    # The group is imported for every completion and every help; what opens a world is not.
    from worker.cli.opening import DemoAsked  # noqa: PLC0415

    ctx.obj = DemoAsked(demo_state)


def main() -> None:
    """Run the command line."""
    guard_streams()
    # It would hold the secret key and the sessions.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    cli(prog_name="worker")
