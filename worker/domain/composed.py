"""Text in Unicode's composed form, in time that grows with its length alone."""

from __future__ import annotations

import unicodedata

# No script stacks more marks on one letter. Sorting a long run of them takes the square of its length.
_MOST_MARKS = 30


def composed(text: str) -> str:
    """The text in form NFC. Of a longer run of marks, so many at a time are put in order."""
    if text.isascii():
        return text
    pieces: list[str] = []
    start = marks = 0
    for at, character in enumerate(text):
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MOST_MARKS:
            pieces.append(text[start:at])
            start, marks = at, 1
    pieces.append(text[start:])
    return "".join(unicodedata.normalize("NFC", piece) for piece in pieces)
