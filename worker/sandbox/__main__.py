"""``python -m worker.sandbox``: the loopback Telegram on its own."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from worker import log
from worker.errors import UserError
from worker.plain_text import guard_streams
from worker.sandbox.command import SandboxOptions, serve


def _options(arguments: list[str]) -> SandboxOptions:
    defaults = SandboxOptions()
    parser = argparse.ArgumentParser(prog="python -m worker.sandbox", description=__doc__)
    parser.add_argument("--host", default=defaults.host)
    parser.add_argument("--port", type=int, default=defaults.port, help="0 chooses a free one")
    parser.add_argument("--admin-port", type=int, default=defaults.admin_port, help="0 chooses a free one")
    parser.add_argument("--state", type=Path, help="keep the ledger here (default: a temporary directory)")
    parser.add_argument("--code", default=defaults.code, help="the login code of every number")
    parser.add_argument("--dc-id", type=int, default=defaults.dc_id)
    parser.add_argument("--first-channel-id", type=int, default=defaults.first_channel_id)
    parser.add_argument("--rtt-ms", type=float, default=0.0, help="round trip to add to every answer")
    parser.add_argument("--mbps", type=float, default=0.0, help="bandwidth of a connection, each way")
    parser.add_argument("--account-mbps", type=float, default=0.0, help="bandwidth of an account, each way")
    parser.add_argument("--reference-lifetime", type=float, default=0.0, help="seconds; 0 is for ever")
    parser.add_argument("--connections-per-address", type=int, default=0, help="0 is unlimited")
    parser.add_argument("--difference-limit", type=int, default=defaults.difference_limit)
    parser.add_argument("--record-all-calls", action="store_true", help="file parts too")
    parser.add_argument("--users", type=Path, help="stop once nobody holds a shared lock on this file")
    parser.add_argument("--json", dest="as_json", action="store_true")
    return SandboxOptions(**vars(parser.parse_args(arguments)))


def main() -> int:
    # The first line on stdout belongs to whoever started the server.
    guard_streams()
    log.configure()
    try:
        asyncio.run(serve(_options(sys.argv[1:])))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
