"""Newline-delimited JSON on a port of its own. ``admin_client`` describes the format."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

from worker.sandbox.admin import arrange, filling, posting, report
from worker.sandbox.admin.commands import COMMANDS
from worker.sandbox.faults import RpcFault

if TYPE_CHECKING:
    from worker.sandbox.server import Sandbox

MAX_LINE = 1 << 24
# Importing them is what fills the registry.
_COMMAND_MODULES = (arrange, filling, posting, report)


class Admin:
    """Answers one JSON object per line, in order."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled by the server's own end: Python 3.11 would print a traceback for a cancelled handler.
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            command = COMMANDS[request["do"]]
            result = await command(self._sandbox, **request.get("with", {}))
        except KeyError as unknown:
            return {"ok": False, "error": f"unknown command or missing field: {unknown}"}
        except (LookupError, ValueError, TypeError, OSError, RpcFault) as refused:
            return {"ok": False, "error": f"{type(refused).__name__}: {refused}"}
        return {"ok": True, "result": result}
