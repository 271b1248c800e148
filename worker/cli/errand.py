"""What the commands share that need an account's connection: a process for it, and progress to look at."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from worker.cli.processes import process_at
from worker.cli.terminal import open_console
from worker.fleet.asking import fulfil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import ProgressColumn

    from worker.cli.opening import Opened
    from worker.fleet.asking import Wish


class ShownCounter:
    """Shows how far an errand is, and writes its bytes where they belong."""

    def __init__(self, bars: Progress, write: Callable[[bytes], None]) -> None:
        self._bars = bars
        self._write = write
        self._task = bars.add_task("connecting", total=None)

    def progress(self, step: str, done: int, total: int) -> None:
        self._bars.update(self._task, description=step, completed=done, total=total or None)

    async def deliver(self, data: bytes) -> None:
        await asyncio.to_thread(self._write, data)


def _refuse(data: bytes) -> None:
    raise AssertionError(f"{len(data)} bytes came that nobody asked for")


@contextlib.contextmanager
def shown(*, quiet: bool, of_bytes: bool, write: Callable[[bytes], None] = _refuse) -> Iterator[ShownCounter]:
    """Progress on standard error, where that is a terminal."""
    numbers: list[ProgressColumn] = (
        [DownloadColumn(), TransferSpeedColumn()] if of_bytes else [MofNCompleteColumn()]
    )
    console = open_console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *numbers,
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bars:
        yield ShownCounter(bars, write)


def do_errand(place: Opened, wish: Wish, counter: ShownCounter) -> dict[str, Any]:
    """Have it done by an account that can; Ctrl-C stops it wherever it runs."""
    return asyncio.run(_do(place, wish, counter))


async def _do(place: Opened, wish: Wish, counter: ShownCounter) -> dict[str, Any]:
    async with process_at(place) as process:
        return await fulfil(process, wish, counter)
