"""Newline-delimited JSON on a port of its own. ``admin_client`` describes the format.

The commands read files of the server's user and post them, and every local user and every web page can reach
a port of this machine. So each request carries a token that is made at each start, and lies in the state
directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from worker.sandbox.admin import arrange, filling, posting, report
from worker.sandbox.admin.commands import COMMANDS
from worker.sandbox.admin_client import TOKEN_FILE
from worker.sandbox.faults import RpcFault

if TYPE_CHECKING:
    from pathlib import Path

    from worker.sandbox.server import Sandbox

MAX_LINE = 1 << 24
# Importing them is what fills the registry.
_COMMAND_MODULES = (arrange, filling, posting, report)


class Admin:
    """Answers one JSON object per line, in order, to those who know the token."""

    def __init__(self, sandbox: Sandbox, token: str) -> None:
        self._sandbox = sandbox
        self._token = token

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled by the server's own end: Python 3.11 would print a traceback for a cancelled handler.
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while line := await reader.readline():
                request = self._admitted(line)
                answer = _REFUSAL if request is None else await self._answer(request)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
                if request is None:
                    # Whatever follows: a browser sends lines of its own before those of a page.
                    return

    def _admitted(self, line: bytes) -> dict[str, Any] | None:
        """The request, if it carries the token."""
        try:
            request = json.loads(line)
            token = str(request["token"])
        except (ValueError, TypeError, LookupError):
            return None
        known = secrets.compare_digest(token.encode("utf-8", "surrogatepass"), self._token.encode())
        return request if known else None

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            command = COMMANDS[request["do"]]
            result = await command(self._sandbox, **request.get("with", {}))
        except KeyError as unknown:
            return {"ok": False, "error": f"unknown command or missing field: {unknown}"}
        except (LookupError, ValueError, TypeError, OSError, RpcFault) as refused:
            return {"ok": False, "error": f"{type(refused).__name__}: {refused}"}
        return {"ok": True, "result": result}


_REFUSAL = {
    "ok": False,
    "error": f"the token is missing or wrong: it lies in {TOKEN_FILE} in the state directory",
}


def make_token(state: Path) -> str:
    """A token for this start, where only this user reads it."""
    token = secrets.token_urlsafe(24)
    unfinished = state / f"{TOKEN_FILE}.{secrets.token_hex(4)}"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token)
    unfinished.replace(state / TOKEN_FILE)
    return token
