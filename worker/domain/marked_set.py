"""What a destination's markers say it holds, without asking any database. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker.domain.marker import Marker, find_marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.domain.telegram import Message


@dataclass(frozen=True, slots=True)
class MarkedMessage:
    """A message that carries the window its marker names."""

    message_id: int
    document_id: int
    file_name: str
    marker: Marker


def marked_message(item: Message | int) -> MarkedMessage | None:
    """The message with its marker, if it has one and its file is as long as that says."""
    if isinstance(item, int) or item.document is None:
        return None
    marker = find_marker(item.text)
    # A caption alone is no archive.
    if marker is None or marker.length != item.document.size:
        return None
    sent_as = item.document.file_name
    named = replace(marker, file_name=marker.original_name(sent_as))
    return MarkedMessage(item.message_id, item.document.document_id, sent_as, named)


@dataclass(frozen=True, slots=True)
class MarkedSet:
    """The messages of one content: ``parts`` follow one another, ``spare`` are those beside them."""

    content_hash: bytes
    total_size: int
    parts: tuple[MarkedMessage, ...]
    spare: tuple[MarkedMessage, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the parts restore every byte."""
        return bool(self.parts) and self._end == self.total_size

    @property
    def missing_bytes(self) -> int:
        """How much the parts lack at the end."""
        return self.total_size - self._end

    @property
    def _end(self) -> int:
        return self.parts[-1].marker.offset + self.parts[-1].marker.length if self.parts else 0

    @property
    def files(self) -> tuple[Marker, ...]:
        """One marker for each original file, in order."""
        first: dict[int, Marker] = {}
        for part in self.parts:
            first.setdefault(part.marker.file_index, part.marker)
        return tuple(first[index] for index in sorted(first))


def marked_sets(messages: Iterable[MarkedMessage]) -> list[MarkedSet]:
    """Put the messages of each content together; of two with the same window the older one counts."""
    by_hash: dict[bytes, list[MarkedMessage]] = {}
    for message in messages:
        by_hash.setdefault(message.marker.content_hash, []).append(message)
    return [_put_together(found) for found in by_hash.values()]


def _put_together(found: list[MarkedMessage]) -> MarkedSet:
    left = sorted(found, key=lambda message: (message.marker.offset, message.message_id))
    parts: list[MarkedMessage] = []
    end = 0
    for message in left:
        if message.marker.offset == end:
            parts.append(message)
            end += message.marker.length
    chosen = {message.message_id for message in parts}
    spare = tuple(message for message in left if message.message_id not in chosen)
    marker = found[0].marker
    return MarkedSet(marker.content_hash, marker.total_size, tuple(parts), spare)
