"""What a person sees while the demo works: a moving display at a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from worker.cli.fitting import cut, padded, wrapped
from worker.plain_text import plain
from worker.status.wording import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console, ConsoleOptions, RenderResult

_REFRESHES_PER_SECOND = 10
# The speed shown is that of so many seconds: of less it jumps, of more it is old.
_SPEED_SECONDS = 2.0
_STEPS = {"fetch": "download", "upload": "upload", "copy": "copy"}
# The terminal shows Ctrl-C behind the last line: in a full one it would begin another, which nobody clears.
_ECHO_CELLS = len("^C")
_FULL, _EMPTY = "━", "─"
_SIZE_CELLS = len("99.9 MB")


@contextlib.contextmanager
def display(console: Console, *, only_told: bool = False) -> Iterator[Scene | Lines]:
    """What fits the terminal, if ``console`` is one, and is gone from it at the end."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(lambda what: _write_line(console, what), only_told=only_told)
        return

    def tell(what: str) -> None:
        for line in wrapped(what, console.width, "  "):
            console.print(Text(line))

    scene = Scene(tell)
    with Live(scene, console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND):
        yield scene


def _write_line(console: Console, what: str) -> None:
    lines = wrapped(what, console.width) if console.is_terminal else [what]
    # Whoever read it may have read enough; the demo goes on.
    with contextlib.suppress(BrokenPipeError):
        for line in lines:
            click.echo(line, err=True)


@dataclass(frozen=True, slots=True)
class _Way:
    step: str
    done: int
    total: int

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 1.0


class Scene:
    """The moving display, as it stands at any moment."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.tell = tell
        self._clock = clock
        self._what = "starting the database"
        self._under_way: dict[str, _Way] = {}
        self._samples: deque[tuple[float, int]] = deque()
        self._spinner = Spinner("dots")
        self.done = self.of = self._moved = 0

    def act(self, what: str) -> None:
        self._what = what

    def standing(self, done: int, of: int, moved: int) -> None:
        self.done, self.of, self._moved = done, of, moved
        self._samples.append((self._clock(), moved))
        while self._samples[0][0] < self._clock() - _SPEED_SECONDS:
            self._samples.popleft()

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        self._under_way[set_name] = _Way(step, done, total)

    def set_ended(self, set_name: str, outcome: str) -> None:  # noqa: ARG002 - a watcher's signature
        self._under_way.pop(set_name, None)

    def set_given_up(self, set_name: str, reason: str) -> None:
        """It is in the table at the end."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        spun = self._spinner.render(console.get_time())
        first, *others = self.lines(options.max_width - 2 - _ECHO_CELLS)
        yield Text.assemble((str(spun), "green"), " ", first, overflow="crop", no_wrap=True)
        for line in others:
            yield Text.assemble("  ", line, overflow="crop", no_wrap=True)

    def lines(self, width: int) -> list[Text]:
        """A headline, and one line per archive under way."""
        # Copied at once: they change while the display is being drawn.
        ways = list(self._under_way.items())
        return [Text(cut(self._headline(width), width)), *(_line(name, way, width) for name, way in ways)]

    def _headline(self, width: int) -> str:
        facts = [self._what]
        if self.of:
            facts += [f"{self.done} of {self.of} archives", f"{size(self._moved)} moved"]
            facts.append(f"{size(self._speed())}/s")
        # Whole facts or none: the last ones give way first.
        while len(facts) > 1 and len(" · ".join(facts)) > width:
            facts.pop()
        return " · ".join(facts)

    def _speed(self) -> float:
        if len(self._samples) < 2:
            return 0.0
        (since, before), (now, moved) = self._samples[0], self._samples[-1]
        return (moved - before) / (now - since) if now > since else 0.0


def _line(name: str, way: _Way, width: int) -> Text:
    """Step, name, bar, size and share; the bar goes first where there is little room, then the size."""
    bar = 20 if width >= 70 else 10 if width >= 50 else 0
    step = padded(_STEPS.get(way.step, way.step), len("download"))
    share = f"{way.share:4.0%}"
    tail = f"{size(way.total):>{_SIZE_CELLS}} {share}" if width >= 40 else share
    room = width - len(step) - 1 - (bar + 1 if bar else 0) - 1 - len(tail)
    text = Text.assemble((step, "cyan"), " ", padded(plain(name), max(0, room)))
    if bar:
        full = round(way.share * bar)
        text.append(" ").append(_FULL * full, "green").append(_EMPTY * (bar - full), "dim")
    text.append(f" {tail}")
    text.truncate(width)
    return text


class Lines:
    """No display: one plain line for whatever is worth one."""

    def __init__(self, write: Callable[[str], None], *, only_told: bool = False) -> None:
        self._write = write
        self._only_told = only_told
        self.done = self.of = 0

    def act(self, what: str) -> None:
        if not self._only_told:
            self._write(f"{what} …")

    def standing(self, done: int, of: int, moved: int) -> None:  # noqa: ARG002 - an audience's signature
        self.done, self.of = done, of

    def tell(self, what: str) -> None:
        self._write(what)

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        """Not a line's worth."""

    def set_ended(self, set_name: str, outcome: str) -> None:
        if not self._only_told:
            self._write(f"{outcome}: {plain(set_name)}")

    def set_given_up(self, set_name: str, reason: str) -> None:
        """It is in the table at the end."""
