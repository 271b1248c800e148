"""What a destination's markers say it holds, without asking any database. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from worker.domain.marker import BadMarker, Marker, read_marker
from worker.domain.origin import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.domain.origin import Authority
    from worker.domain.telegram import Message

# Contents whose parts lie far apart, or will never be complete; more at a time are nobody's doing.
_MOST_OPEN = 10_000


@dataclass(frozen=True, slots=True)
class MarkedMessage:
    """A message that carries the window its marker names.

    ``is_proven``: its bytes are those, and nobody has to read them to be sure. ``is_worded_by_us``: what its
    marker says beyond the bytes, as where they come from, is ours too.
    """

    message_id: int
    document_id: int
    file_name: str
    marker: Marker
    is_proven: bool = True
    is_worded_by_us: bool = True


@dataclass(frozen=True, slots=True)
class LeftAside:
    """A message with a marker that stands for nothing, and why."""

    message_id: int
    name: str
    why: str
    # It may well be ours, and a person can say so.
    is_old: bool = False


def marked_message(
    message: Message, authority: Authority, *, trust_old: bool = False
) -> MarkedMessage | LeftAside | None:
    """The message as its marker makes it, if it has one; ``trust_old``: a person vouches for old ones."""
    marker = read_marker(message.text)
    if marker is None or message.document is None:
        # A caption alone is no archive.
        return None
    sent_as = message.document.file_name
    if isinstance(marker, BadMarker):
        return LeftAside(message.message_id, sent_as, marker.why)
    if marker.length != message.document.size:
        return LeftAside(message.message_id, sent_as, "its file has another length than its marker says")
    standing = authority.standing(message, marker)
    is_vouched_for = standing is Standing.OLD and trust_old
    if not is_vouched_for and standing in _ASIDE:
        why, is_old = _ASIDE[standing], standing is Standing.OLD
        return LeftAside(message.message_id, sent_as, why, is_old=is_old)
    named = replace(marker, file_name=marker.original_name(sent_as))
    return MarkedMessage(
        message.message_id,
        message.document.document_id,
        sent_as,
        named,
        is_proven=standing is Standing.PROVEN,
        is_worded_by_us=not is_vouched_for,
    )


_ASIDE = {
    Standing.FOREIGN: "its marker's code was not made for this message with a key that is here",
    Standing.OLD: "its marker has no code, and none of the accounts here has sent it",
}


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
    def is_proven(self) -> bool:
        """Whether nobody has to read the bytes to be sure of them."""
        return all(part.is_proven for part in self.parts)

    @property
    def is_worded_by_us(self) -> bool:
        """Whether what the markers say of the source is to be believed."""
        return all(part.is_worded_by_us for part in self.parts)

    @property
    def name(self) -> str:
        """What it was sent as."""
        return (self.parts or self.spare)[0].file_name

    @property
    def message_ids(self) -> list[int]:
        """Every message of it, in order."""
        return sorted(message.message_id for message in (*self.parts, *self.spare))

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


@dataclass(slots=True)
class _Together:
    """The messages of a content so far: those from its beginning on reach to ``end`` without a hole.

    ``lengths`` are the windows, by where they begin, that nothing leads up to so far.
    """

    first: MarkedMessage
    by_window: dict[tuple[int, int], MarkedMessage] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    end: int = 0

    def add(self, message: MarkedMessage) -> bool:
        """Whether there is no older one with its window."""
        marker = message.marker
        if (marker.offset, marker.length) in self.by_window:
            return False
        self.by_window[marker.offset, marker.length] = message
        # Of two that begin at the same place, the older one counts.
        self.lengths.setdefault(marker.offset, marker.length)
        while self.end in self.lengths:
            self.end += self.lengths.pop(self.end)
        return True

    @property
    def messages(self) -> list[MarkedMessage]:
        return list(self.by_window.values())


@dataclass(slots=True)
class Gathering:
    """Puts contents together while their messages come, oldest first, and holds only what is not complete."""

    _open: dict[bytes, _Together] = field(default_factory=dict)

    def add(self, message: MarkedMessage) -> MarkedSet | MarkedMessage | None:
        """The content that this message completes; the message itself, if an older one holds its window."""
        marker = message.marker
        together = self._open.setdefault(marker.content_hash, _Together(message))
        if not together.add(message):
            return message
        if together.end != together.first.marker.total_size:
            return None
        del self._open[marker.content_hash]
        return _put_together(together.messages)

    def overflow(self) -> Iterator[MarkedSet]:
        """What has waited longest for the rest of it, while there is too much of that."""
        while len(self._open) > _MOST_OPEN:
            yield self._give_up(next(iter(self._open)))

    def rest(self) -> Iterator[MarkedSet]:
        """Nothing comes any more: what is not complete."""
        for content_hash in list(self._open):
            yield self._give_up(content_hash)

    @property
    def oldest(self) -> int | None:
        """The first message that waits for others."""
        return min((together.first.message_id for together in self._open.values()), default=None)

    def _give_up(self, content_hash: bytes) -> MarkedSet:
        return _put_together(self._open.pop(content_hash).messages)
