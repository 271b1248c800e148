"""Text for people and programs in which nothing steers a terminal or turns a line around.

Names, captions, reasons and errors hold what strangers have written: escape sequences, C1 controls, marks
that reverse the direction of writing. This is the one place that takes them out. :func:`guard_streams` puts
it before everything that a command prints; what has colours of its own (logs, tables) passes its texts
through
:func:`plain` or :func:`lines` first and writes beside the guard, to :func:`unguarded`.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_IN_ITS_PLACE = "\N{REPLACEMENT CHARACTER}"
_LAYOUT = str.maketrans("", "", "\n\t")
# What json.dumps leaves as it is, and what cannot begin any of the rest: the pattern stays small.
_PERHAPS_UNPRINTABLE = re.compile(r"[^\n -~]")


def plain(text: str) -> str:
    """One line: whatever would steer a terminal, break the line or turn it around is replaced."""
    return text if text.isprintable() else "".join(map(_harmless, text))


def lines(text: str) -> str:
    """The same for text that has lines and tabs of its own."""
    if text.translate(_LAYOUT).isprintable():
        return text
    return "".join(character if character in "\n\t" else _harmless(character) for character in text)


def to_json(document: Any, *, indent: int | None = 2, default: Callable[[Any], Any] | None = None) -> str:
    """JSON that reads back as it was, in letters of every script: what is not printable is escaped."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, default=default)
    return _PERHAPS_UNPRINTABLE.sub(_escaped, text)


class GuardedStream:
    """A stream of text whose every line is plain."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        self.unguarded.write(lines(text))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def guard_streams() -> None:
    """Let nothing but plain text out of this process by its standard streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # A process that was started without one has none.
        if stream is not None and not isinstance(stream, GuardedStream):
            setattr(sys, name, GuardedStream(stream))


def unguarded(stream: TextIO) -> TextIO:
    """The stream itself, for what makes its own texts plain and adds colours to them."""
    inner: TextIO = getattr(stream, "unguarded", stream)
    return inner


def _harmless(character: str) -> str:
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return _IN_ITS_PLACE


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if _harmless(character) == character:
        return character
    if unicodedata.category(character) == "Cs":
        # Half a character, of a name that is no text at all: other readers of JSON refuse even its escape.
        return _IN_ITS_PLACE
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
