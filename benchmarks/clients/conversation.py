"""How a client process is led through a benchmark: one JSON line per command in, one per result out.

Standard library only: this file runs in the environment of every client that is measured.
"""

import asyncio
import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

CHUNK = 1 << 20


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> int:
    """The most this process has held. On Linux ``ru_maxrss`` begins with what its parent has ever held."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def converse(operations: dict[str, Callable[[dict[str, Any]], Awaitable[str | None]]]) -> None:
    """Answer commands until the input ends. An operation returns the SHA-256 of what it moved, or None."""
    say({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        out = Path(command["out"])
        out.unlink(missing_ok=True)
        cpu, began = cpu_seconds(), time.perf_counter()
        digest = await operations[command["do"]](command)
        seconds, used = time.perf_counter() - began, cpu_seconds() - cpu
        if digest is None and out.exists():
            digest = await asyncio.to_thread(sha256_of, out)
        out.unlink(missing_ok=True)
        say({"seconds": seconds, "cpu": used, "peak": peak_memory(), "sha256": digest})


def say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def begin(main: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """Run ``main`` with the facts given as the first argument; nothing but results goes to stdout."""
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    asyncio.run(main(json.loads(sys.argv[1])))
