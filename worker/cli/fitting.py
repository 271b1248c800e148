"""Text that fits a terminal: cut with an ellipsis or broken between words, never within one."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

_ELLIPSIS = "…"


def cut(text: str, width: int) -> str:
    """The text in at most ``width`` cells; wide letters take two."""
    if cell_len(text) <= width:
        return text
    # A wide letter that would be halved is left out, and its first half is a space.
    return set_cell_size(text, max(0, width - 1)).rstrip() + _ELLIPSIS if width > 0 else ""


def padded(text: str, width: int) -> str:
    """The text in exactly ``width`` cells."""
    return set_cell_size(cut(text, width), width)


def wrapped(words: str, width: int, indent: str = "", keep: str = "") -> list[str]:
    """Lines of at most ``width`` cells, broken at spaces; the name ``keep`` is broken nowhere."""
    lines: list[str] = []
    line = ""
    for word in _words(words, keep):
        longer = f"{line} {word}" if line else word
        if line and cell_len(indent + longer) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [indent + cut(each, width - cell_len(indent)) for each in [*lines, line]]


def _words(text: str, keep: str) -> list[str]:
    """The words of the text, in which a name with spaces in it counts as one."""
    if not keep or keep not in text:
        return text.split()
    before, _, after = text.partition(keep)
    first, last = before.split(), after.split()
    # Letters that touch the name belong to it, such as the bracket around it.
    head = first.pop() if first and not before[-1].isspace() else ""
    tail = last.pop(0) if last and not after[0].isspace() else ""
    return [*first, f"{head}{keep}{tail}", *last]
