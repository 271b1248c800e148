"""A loopback Telegram in a process of its own, that may be killed."""

import os
import signal
from pathlib import Path

from forked import start_sandbox


class Telegram:
    """It comes back on the same ports with the same ledger."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._arguments = ("--state", str(folder), *options)
        self._log = folder.with_name(f"{folder.name}.log")
        self._start()

    def _start(self) -> None:
        self._process, self.facts = start_sandbox(*self._arguments, log=self._log)

    def restart(self) -> None:
        """Kill it where it stands, and start it again."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._start()

    def close(self) -> None:
        os.kill(self._process.pid, signal.SIGTERM)
        self._process.wait()
