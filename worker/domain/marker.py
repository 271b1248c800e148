"""The line in a caption that says which bytes a message carries.

With it a message can be found again after a crash, and the whole index rebuilt from the destination alone.
Fields are separated by single spaces; the name comes last and is cut where the line would grow too long (the
document's own attributes carry it whole).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

MAX_LENGTH = 400
_VERSION = "af1"
_PART_NUMBER = re.compile(r"\.[0-9]{3,}$")
_LINE = re.compile(
    r"^af1 (?P<hash>[A-Za-z0-9_-]{43}) (?P<total>\d+) (?P<offset>\d+)\+(?P<length>\d+) "
    r"(?P<index>\d+):(?P<size>\d+) (?P<channel>-?\d+)/(?P<message>\d+)/(?P<document>-?\d+) (?P<name>.*)$",
    re.MULTILINE,
)


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

    def original_name(self, sent_as: str) -> str:
        """The file's name; where the line had no room for all of it, as the message's own file tells."""
        if len(self.line()) < MAX_LENGTH:
            return self.file_name
        return sent_as if self.length == self.file_size else _PART_NUMBER.sub("", sent_as)

    def line(self) -> str:
        """The marker as it stands in a caption."""
        digest = base64.urlsafe_b64encode(self.content_hash).decode().rstrip("=")
        head = (
            f"{_VERSION} {digest} {self.total_size} {self.offset}+{self.length} "
            f"{self.file_index}:{self.file_size} "
            f"{self.source_channel}/{self.source_message}/{self.source_document} "
        )
        name = " ".join(self.file_name.split())
        return head + name[: MAX_LENGTH - len(head)]


def find_marker(caption: str) -> Marker | None:
    """The marker in this caption, if it has one."""
    found = _LINE.search(caption)
    if found is None:
        return None
    try:
        content_hash = base64.b64decode(found["hash"] + "=", altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    return Marker(
        content_hash=content_hash,
        total_size=int(found["total"]),
        offset=int(found["offset"]),
        length=int(found["length"]),
        file_index=int(found["index"]),
        file_size=int(found["size"]),
        file_name=found["name"],
        source_channel=int(found["channel"]),
        source_message=int(found["message"]),
        source_document=int(found["document"]),
    )
