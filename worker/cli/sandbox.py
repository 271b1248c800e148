"""``worker sandbox``: a loopback Telegram to try things on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from worker import log
from worker.cli.opening import readable_errors
from worker.sandbox.command import SandboxOptions, serve

_DEFAULTS = SandboxOptions()


@click.command()
@click.option("--port", default=0, show_default=True, help="Port for clients; 0 chooses a free one.")
@click.option(
    "--admin-port", default=0, show_default=True, help="Port for the admin API; 0 chooses a free one."
)
@click.option(
    "--state", type=click.Path(path_type=Path, file_okay=False), help="Keep everything in this folder."
)
@click.option("--code", default=_DEFAULTS.code, show_default=True, help="The login code of every number.")
@click.option(
    "--first-channel-id", default=_DEFAULTS.first_channel_id, show_default=True, help="For old clients."
)
@click.option("--reference-lifetime", default=0.0, help="Seconds until a file reference expires; 0 is never.")
@click.option("--record-all-calls", is_flag=True, help="Keep file parts in the journal too.")
@click.option("--rtt-ms", default=0.0, help="Round trip to add to every answer.")
@click.option("--mbps", default=0.0, help="Bandwidth of a connection, each way; 0 is unlimited.")
@click.option("--account-mbps", default=0.0, help="Bandwidth of an account, each way; 0 is unlimited.")
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as one line of JSON.")
def sandbox(*, state: Path | None, **shape: Any) -> None:
    """Run a real MTProto server on 127.0.0.1 until SIGTERM.

    Any phone number can sign up.

    \b
    Examples:
      worker sandbox --json
      worker sandbox --port 4430 --state ./telegram --rtt-ms 50
    """
    options = SandboxOptions(state=state, **shape)
    log.configure()
    with readable_errors():
        asyncio.run(serve(options))
