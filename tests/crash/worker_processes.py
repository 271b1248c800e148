"""The worker processes of one world, and their logs."""

from pathlib import Path
from typing import Any

from forked import Forked, fork_server, nothing, plain_environment


class Workers:
    """Known by their pids, as whoever kills them knows them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[int, Forked] = {}
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
        return process.pid

    def wait(self, pid: int) -> dict[str, Any]:
        return self._processes[pid].wait()

    def until_stopped(self, pid: int) -> dict[str, Any]:
        return self._processes[pid].until_stopped()
