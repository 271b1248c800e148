"""Signals that end a process: what has to be undone is undone, and what must not be cut short is not."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def leaving_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP leave the block as Ctrl-C does: through every ``finally``."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    with _handled(_ENDING, leave):
        yield


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back what would end the process in the middle of the block, until its end."""
    heard: list[int] = []
    try:
        with _handled((signal.SIGINT, *_ENDING), lambda number, _frame: heard.append(number)):
            yield
    finally:
        for number in dict.fromkeys(heard):
            signal.raise_signal(number)


@contextlib.contextmanager
def _handled(
    numbers: tuple[signal.Signals, ...], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    # Python lets only the main thread handle signals; elsewhere nothing interrupts anyway.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What somebody had ignored on purpose, as nohup does, stays ignored.
    before = {
        number: found for number in numbers if (found := signal.getsignal(number)) is not signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, found in before.items():
            signal.signal(number, found if found is not None else signal.SIG_DFL)
