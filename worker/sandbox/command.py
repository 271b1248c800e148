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

from worker.errors import UserError
from worker.sandbox.admin.door import MAX_LINE, Admin
from worker.sandbox.server import Sandbox, SandboxOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SandboxOptions", "serve"]


@contextlib.contextmanager
def _state_directory(options: SandboxOptions) -> Iterator[Path]:
    if options.state is None:
        with tempfile.TemporaryDirectory(prefix="sandbox-") as directory:
            yield Path(directory)
        return
    options.state.mkdir(parents=True, exist_ok=True)
    yield options.state


def _same_port(state: Path, name: str, wanted: int) -> int:
    """A server that is started again on the same state listens where it did before."""
    remembered = state / f"{name}.port"
    if wanted or not remembered.exists():
        return wanted
    return int(remembered.read_text())


async def serve(options: SandboxOptions) -> None:
    """Serve until SIGTERM or SIGINT. The first line on stdout says where."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with _state_directory(options) as state:
        sandbox = Sandbox(options, state)
        admin = Admin(sandbox)
        try:
            clients = await asyncio.start_server(
                sandbox.serve_client, options.host, _same_port(state, "client", options.port), limit=1 << 20
            )
            admins = await asyncio.start_server(
                admin.serve_client,
                options.host,
                _same_port(state, "admin", options.admin_port),
                limit=MAX_LINE,
            )
        except OSError as error:
            await sandbox.close()
            raise UserError(
                f"The sandbox cannot listen on {options.host}: {error}",
                remedy="choose another --port, or stop what listens there",
            ) from error
        sandbox.port = clients.sockets[0].getsockname()[1]
        admin_port = admins.sockets[0].getsockname()[1]
        (state / "client.port").write_text(str(sandbox.port))
        (state / "admin.port").write_text(str(admin_port))
        _announce(options, sandbox, admin_port)
        await stop.wait()
        clients.close()
        admins.close()
        await sandbox.close()


def _announce(options: SandboxOptions, sandbox: Sandbox, admin_port: int) -> None:
    facts = {
        "host": options.host,
        "port": sandbox.port,
        "dc_id": options.dc_id,
        "public_key": str(sandbox.rsa_key.public_pem.resolve()),
        "admin_port": admin_port,
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
