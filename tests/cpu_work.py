"""How the time that a computation takes grows with what it is given, told apart from what else runs here."""

import contextlib
import gc
import signal
import time
from collections.abc import Callable, Iterator

# Whatever takes longer is not waited for: an expression that tries every way would take years.
_MOST_SECONDS = 20.0
# Below this a measurement says more about the clock than about the work.
_LEAST_SECONDS = 0.00015
_LARGEST = 1 << 15
_TRIES = 8
# With this nobody has to look again.
_CALM = 2.3


class EndlessError(AssertionError):
    """The computation was broken off."""


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    def broken_off(number, frame):
        raise EndlessError(f"it took more than {_MOST_SECONDS:.0f} s of this process's own time")

    before = signal.signal(signal.SIGPROF, broken_off)
    signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _seconds(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before


def growth(prepare: Callable[[int], Callable[[], object]], size: int) -> float:
    """By which factor the work grows when its input is doubled, as the least of several measurements shows.

    It is measured in this thread's own time, of which a busy machine takes none. Input that is dealt with at
    once is made larger until there is something to measure; where there never is, nothing grows. What seems
    to grow is looked at again with four times as much of it: caches and the machine's moods show less there,
    and a square shows more.
    """
    with _bounded():
        while _seconds(prepare(size)) < _LEAST_SECONDS:
            if size >= _LARGEST:
                return 1.0
            size *= 8
        grown = _doubled(prepare, size)
        return grown if grown < _CALM else min(grown, _doubled(prepare, 4 * size))


def _doubled(prepare: Callable[[int], Callable[[], object]], size: int) -> float:
    small, large = prepare(size), prepare(2 * size)
    least = float("inf")
    gc.disable()
    try:
        for _ in range(_TRIES):
            # Side by side, so that what makes the machine slow makes both slow.
            least = min(least, _seconds(large) / max(_seconds(small), _LEAST_SECONDS / 2))
            if least < _CALM:
                break
        return least
    finally:
        gc.enable()
