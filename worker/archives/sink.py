"""Where a format's parser puts what it finds: counted, cleaned, bounded, sent off in batches."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from worker.domain.listing import Entry, Mark, Unchecked

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 2_000
BATCH_BYTES = 1024 * 1024
GIB = 1024**3
# Deflate cannot exceed 1032:1; whatever claims more, and much, is meant to hurt whoever unpacks it.
BOMB_RATIO = 1_040
BOMB_SIZE = GIB

_UNSAFE = re.compile(
    r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)|[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200e\u200f]"
)


class Sink:
    """Takes entries one by one; after the limit it only counts.

    ``ranges`` may be set to a list, which then takes every unchecked range; only tests have room for that.
    """

    def __init__(self, send: Callable[[list[Entry]], None], entry_limit: int, output_limit: int) -> None:
        self.count = 0
        self.total_size = 0
        self.packed_size = 0
        self.marks: set[Mark] = set()
        self.notes: list[str] = []
        self.unchecked: Counter[Unchecked] = Counter()
        self.ranges: list[tuple[int, int, Unchecked]] | None = None
        self._send = send
        self._entry_limit = entry_limit
        self._room = output_limit
        self._batch: list[Entry] = []
        self._weight = 0

    def add(self, entry: Entry) -> None:
        """Take one entry."""
        self.count += 1
        path = entry[0]
        self.total_size += entry[1]
        if entry[2] is not None:
            self.packed_size += entry[2]
        if self.count > self._entry_limit or self._room <= 0:
            self.marks.add(Mark.TRUNCATED)
            return
        if not path.isascii() or "\0" in path:
            path = clean_text(path)
            entry = Entry(path, *entry[1:])
        # The cheap questions spare nearly every honest name the regular expression.
        odd = not path.isprintable() or ".." in path or path[:1] in "/\\" or path[1:2] == ":"
        if odd and _UNSAFE.search(path):
            self.marks.add(Mark.UNSAFE_PATHS)
        if entry[6]:
            self.marks.add(Mark.ENCRYPTED)
        self._weight += 4 * len(path) + 100
        self._batch.append(entry)
        if len(self._batch) >= BATCH or self._weight > BATCH_BYTES:
            self.flush()

    @property
    def full(self) -> bool:
        """Whether further entries are only counted, so that their names need not be read."""
        return self.count >= self._entry_limit or self._room <= 0

    def skip(self, size: int, packed: int) -> None:
        """Count an entry that is not listed."""
        self.count += 1
        self.total_size += size
        self.packed_size += packed
        self.marks.add(Mark.TRUNCATED)

    def flush(self) -> None:
        """Send what has gathered."""
        if self._batch:
            self._send(self._batch)
            self._room -= self._weight
            self._batch, self._weight = [], 0

    def mark(self, mark: Mark, note: str = "") -> None:
        """Remember a fact about the archive, with words for a person."""
        self.marks.add(mark)
        if note and note not in self.notes and len(self.notes) < 20:
            self.notes.append(clean_text(note)[:300])

    def leave(self, reason: Unchecked, position: int, length: int) -> None:
        """Note that these bytes of the joined file were compared with nothing."""
        if length > 0:
            self.unchecked[reason] += length
            if self.ranges is not None:
                self.ranges.append((position, length, reason))

    def close(self, archive_size: int) -> None:
        """Judge the whole and send the rest."""
        self.flush()
        if self.total_size > BOMB_SIZE and self.total_size > BOMB_RATIO * max(1, archive_size):
            self.mark(Mark.BOMB, f"unpacks from {archive_size} to {self.total_size} bytes")
        damaged = self.marks & {Mark.INCOMPLETE, Mark.CORRUPT}
        if self.packed_size > archive_size and not damaged:
            self.mark(Mark.BOMB, f"members claim {self.packed_size} packed bytes of {archive_size}")
        if self.count == 0 and not self.marks:
            self.mark(Mark.EMPTY)


def clean_text(text: str) -> str:
    """Replace what no database and no JSON reader takes: NUL and lone surrogates."""
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
