"""A loopback Telegram in a process of its own."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def running_sandbox(folder: Path) -> Iterator[dict]:
    process = subprocess.Popen(
        [sys.executable, "-m", "worker.sandbox", "--json", "--state", str(folder)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
    )
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)
