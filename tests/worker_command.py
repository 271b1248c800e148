"""The ``worker`` command as a person runs it: a process of its own, with an environment of its own."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


async def worker(*arguments: str, cwd: Path | None = None, **settings: object) -> Ended:
    """Run ``python -m worker`` with only these ``WORKER_…`` settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("WORKER_")}
    env |= {f"WORKER_{name.upper()}": str(value) for name, value in settings.items()}
    env["PYTHONPATH"] = str(_ROOT)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worker", *arguments),
        env=env,
        cwd=cwd or Path("/"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())
