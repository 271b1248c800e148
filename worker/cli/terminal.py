"""Tables, colours and live views for a terminal, whose texts are plain whatever they were made from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from worker.plain_text import lines, unguarded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType


class PlainConsole(Console):
    """Makes plain what is printed, cell by cell: its own colours and movements are not text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(lines(text), style)


def open_console(*, stderr: bool = False, **options: Any) -> PlainConsole:
    """A console on standard output, or on standard error."""
    options.setdefault("file", unguarded(sys.stderr if stderr else sys.stdout))
    return PlainConsole(stderr=stderr, **options)
