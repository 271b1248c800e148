"""The worker processes of one world, and their logs."""

import contextlib
from pathlib import Path
from typing import Any

import psutil
from forked import Forked, fork_server, nothing, plain_environment

# A worker that the machine let starve for as long as a lease lasts has to give up, and says so: no mistake.
STARVED = {"lost": "lease"}


class Workers:
    """Known by their pids, as whoever kills them knows them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[int, Forked] = {}
        self._log_of: dict[int, Path] = {}
        self.logs: list[Path] = []

    def start(self, *argv: str, env: dict[str, str]) -> int:
        path = self._folder / f"run-{len(self.logs):04d}.log"
        self.logs.append(path)
        with nothing() as empty, path.open("ab") as log:
            process = fork_server().start(
                *("worker", *argv),
                env=plain_environment() | env,
                streams=(empty, log.fileno(), log.fileno()),
            )
        self._processes[process.pid] = process
        self._log_of[process.pid] = path
        return process.pid

    def wait(self, pid: int) -> dict[str, Any]:
        ended = self._processes[pid].wait()
        is_starved = ended == {"exit": 1} and '"lease.lost"' in self._log_of[pid].read_text()
        return STARVED if is_starved else ended

    def end_all(self) -> None:
        """Kill whatever a test that failed has left, so that it takes nothing away from others."""
        for pid in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if process.ppid() == fork_server().pid:
                    process.kill()

    def last_words(self) -> str:
        """The end of every log, for whoever asks why nothing came of them."""
        ends = ((log.name, log.read_text(errors="replace").splitlines()[-40:]) for log in self.logs)
        return "\n".join(line for name, lines in ends for line in (f"== {name}", *lines))

    def until_stopped(self, pid: int) -> dict[str, Any]:
        return self._processes[pid].until_stopped()
