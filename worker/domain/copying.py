"""Whether a part can be sent as the document that its bytes came from, without uploading them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.telegram import Document, PostedNow


@dataclass(frozen=True, slots=True)
class Hashed:
    """The document whose bytes were fetched and hashed, and the name that they go out under."""

    document_id: int
    size: int
    sent_as: str


def whole_file(sizes: Sequence[int], offset: int, length: int) -> int | None:
    """Which of the files, laid end to end, this window is from its first byte to its last; None if none."""
    start = 0
    for index, size in enumerate(sizes):
        if (start, size) == (offset, length):
            return index
        start += size
    return None


def document_to_copy(posted: PostedNow, hashed: Hashed) -> Document:
    """The document, as its source shows it now; ``RefusedError`` says what stands against copying it."""
    message = posted.message
    if message is None or message.document is None:
        raise RefusedError(f"{hashed.sent_as}: its message is gone")
    if posted.is_channel_protected or message.is_protected:
        raise RefusedError(f"{hashed.sent_as}: its source forbids copying")
    document = message.document
    if (document.document_id, document.size) != (hashed.document_id, hashed.size):
        raise RefusedError(f"{hashed.sent_as}: its message carries another file by now")
    # A copy keeps the name of its original, which may hold what no name that is sent on may hold.
    if document.file_name != hashed.sent_as:
        raise RefusedError(f"{hashed.sent_as}: its original has another name")
    return document
