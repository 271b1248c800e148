"""The line in a caption that says which bytes a message carries.

With it a message can be found again after a crash, and the whole index rebuilt from the destination alone.
Fields are separated by single spaces; the name comes last and is cut where the line would grow too long (the
document's own attributes carry it whole). A line of the first version has no code: anybody can write one. The
second has the code of ``marker_code``. Whoever reads a line has to ask whose it is before believing it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LENGTH = 400
CODE_LENGTH = 16
_PART_NUMBER = re.compile(r"\.[0-9]{3,}$")
# Each run of digits ends at a character that is none: the search is linear, whatever a caption holds.
_LINE = re.compile(
    r"^(?:af1|(?P<coded>af2)) (?P<hash>[A-Za-z0-9_-]{43}) "
    r"(?P<total>[0-9]+) (?P<offset>[0-9]+)\+(?P<length>[0-9]+) "
    r"(?P<index>[0-9]+):(?P<size>[0-9]+) (?P<channel>[0-9]+)/(?P<message>[0-9]+)/(?P<document>-?[0-9]+) "
    r"(?(coded)(?P<code>[A-Za-z0-9_-]{16}) )(?P<name>.*)$",
    re.MULTILINE,
)
# What Telegram gives and the database keeps: message ids have 32 bits, everything else 64.
_MOST, _MOST_SMALL = 2**63 - 1, 2**31 - 1
# More digits than any number in range, and fewer than Python takes a noticeable time for.
_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Marker:
    """One window of one content: where it lies in the whole, and where the whole came from."""

    content_hash: bytes
    total_size: int
    offset: int
    length: int
    file_index: int
    file_size: int
    file_name: str
    source_channel: int
    source_message: int
    source_document: int
    code: str = ""

    def original_name(self, sent_as: str) -> str:
        """The file's name; where the line had no room for all of it, as the message's own file tells."""
        # A line that was cut at a space is one character short.
        if len(self.line()) < MAX_LENGTH - 1:
            return self.file_name
        return sent_as if self.length == self.file_size else _PART_NUMBER.sub("", sent_as)

    def line(self) -> str:
        """The marker as it stands in a caption."""
        digest = base64.urlsafe_b64encode(self.content_hash).decode().rstrip("=")
        head = (
            f"{'af2' if self.code else 'af1'} {digest} {self.total_size} {self.offset}+{self.length} "
            f"{self.file_index}:{self.file_size} "
            f"{self.source_channel}/{self.source_message}/{self.source_document} "
            f"{self.code}{' ' if self.code else ''}"
        )
        name = " ".join(self.file_name.split())
        # Telegram removes spaces from a caption's end.
        return head + name[: MAX_LENGTH - len(head)].rstrip()


@dataclass(frozen=True, slots=True)
class BadMarker:
    """A line with the form of a marker that names what cannot be."""

    why: str


def read_marker(caption: str) -> Marker | BadMarker | None:
    """The last marker in this caption, if it has one."""
    found = _last(caption)
    return None if found is None else _marker(found)


def find_marker(caption: str) -> Marker | None:
    """The last marker in this caption, if it has one that can be."""
    marker = read_marker(caption)
    return marker if isinstance(marker, Marker) else None


def with_code(caption: str, make: Callable[[Marker], str]) -> str:
    """The caption with the code that ``make`` gives for its marker as it will stand there."""
    found, marker = _last(caption), find_marker(caption)
    assert found is not None, "every caption of ours carries a marker"
    assert marker is not None, "what we write ourselves is in range"
    # The code takes room from the name, and vouches for what is left of that.
    as_written = find_marker(replace(marker, code="A" * CODE_LENGTH).line())
    assert as_written is not None, "a line of ours is read as it was written"
    line = replace(as_written, code=make(as_written)).line()
    return caption[: found.start()] + line + caption[found.end() :]


def _last(caption: str) -> re.Match[str] | None:
    return next(iter(deque(_LINE.finditer(caption), maxlen=1)), None)


def _marker(found: re.Match[str]) -> Marker | BadMarker:
    texts = {name: found[name] for name in _NUMBERS}
    if any(len(digits) > _DIGITS for digits in texts.values()):
        return BadMarker("a number in its marker has too many digits")
    numbers = {name: int(digits) for name, digits in texts.items()}
    for name, (least, most) in _NUMBERS.items():
        if not least <= numbers[name] <= most:
            return BadMarker(f"the {name} in its marker is out of range")
    if numbers["offset"] + numbers["length"] > numbers["total"] or not (
        numbers["length"] <= numbers["size"] <= numbers["total"]
    ):
        return BadMarker("the bytes that its marker names are not within their whole")
    try:
        content_hash = base64.b64decode(found["hash"] + "=", altchars=b"-_", validate=True)
    except binascii.Error:
        return BadMarker("the hash in its marker is none")
    return Marker(
        content_hash=content_hash,
        total_size=numbers["total"],
        offset=numbers["offset"],
        length=numbers["length"],
        file_index=numbers["index"],
        file_size=numbers["size"],
        file_name=found["name"],
        source_channel=numbers["channel"],
        source_message=numbers["message"],
        source_document=numbers["document"],
        code=found["code"] or "",
    )


_NUMBERS = {
    "total": (1, _MOST),
    "offset": (0, _MOST),
    "length": (1, _MOST),
    "index": (0, _MOST_SMALL),
    "size": (1, _MOST),
    "channel": (0, _MOST),
    "message": (0, _MOST_SMALL),
    "document": (-_MOST - 1, _MOST),
}
