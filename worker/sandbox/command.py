"""Running the loopback Telegram until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from worker.sandbox.admin.door import MAX_LINE, Admin, make_token
from worker.sandbox.admin_client import TOKEN_FILE
from worker.sandbox.allocation import keep_large_blocks
from worker.sandbox.attendance import stopped_when_unused
from worker.sandbox.listening import Ports, close_to_others, listen, port_of, sole_server_of
from worker.sandbox.server import Sandbox, SandboxOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SandboxOptions", "serve"]

READ_AHEAD = 1 << 20


@contextlib.contextmanager
def _state_directory(options: SandboxOptions) -> Iterator[Path]:
    if options.state is None:
        with tempfile.TemporaryDirectory(prefix="sandbox-") as directory:
            yield Path(directory)
        return
    close_to_others(options.state)
    yield options.state


async def serve(options: SandboxOptions) -> None:
    """Serve until SIGTERM or SIGINT. The first line on stdout says where."""
    keep_large_blocks()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with (
        stopped_when_unused(options.users, stop),
        _state_directory(options) as state,
        sole_server_of(state),
    ):
        sandbox = Sandbox(options, state)
        try:
            await _serve_until(stop, sandbox, state)
        finally:
            await sandbox.close()


async def _serve_until(stop: asyncio.Event, sandbox: Sandbox, state: Path) -> None:
    ports = Ports(state)
    options, admin = sandbox.options, Admin(sandbox, make_token(state))
    port = options.port or ports.before("client")
    clients = await listen(sandbox.serve_client, options.host, port, READ_AHEAD)
    port = options.admin_port or ports.before("admin")
    admins = await listen(admin.serve_client, options.host, port, MAX_LINE)
    sandbox.port = port_of(clients)
    ports.keep("client", sandbox.port)
    ports.keep("admin", port_of(admins))
    _announce(options, sandbox, port_of(admins), state / TOKEN_FILE)
    await stop.wait()
    clients.close()
    admins.close()


def _announce(options: SandboxOptions, sandbox: Sandbox, admin_port: int, token_file: Path) -> None:
    facts = {
        "host": options.host,
        "port": sandbox.port,
        "dc_id": options.dc_id,
        "public_key": str(sandbox.rsa_key.public_pem.resolve()),
        "admin_port": admin_port,
        "admin_token_file": str(token_file.resolve()),
    }
    if options.as_json:
        line = json.dumps(facts)
    else:
        line = (
            f"Loopback Telegram on {facts['host']}:{facts['port']} (DC {facts['dc_id']}, "
            f"admin port {admin_port}, public key {facts['public_key']}); stop it with Ctrl-C"
        )
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
