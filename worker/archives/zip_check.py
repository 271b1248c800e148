"""Whether the bytes of a zip bear its directory out: local headers, contents, and no byte unexplained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.zip_directory import LOCAL, RECORD
from worker.archives.zip_end import END, END64, LOCATOR64
from worker.archives.zip_member import (
    ENCRYPTED,
    LZMA,
    LZMA_HEADER,
    MASKED,
    checksum_holds,
    end_of,
    member_at,
    position_of,
)
from worker.domain.listing import Mark, Unchecked

if TYPE_CHECKING:
    from worker.archives.sink import Sink
    from worker.archives.source import Parts
    from worker.archives.whole import Budget
    from worker.archives.zip_directory import Record
    from worker.archives.zip_end import Directory
    from worker.archives.zip_member import Member

# What a zip over several disks begins with, or one that was planned so and fitted on one.
SPANNING = (b"PK\x07\x08", b"PK00")
# Where in a local header the moment stands.
TIME = 10


class ZipCheck:
    """One pass over a zip's members, in the order of the directory."""

    def __init__(
        self, parts: Parts, directory: Directory, start: int, shift: int, kept: list[Record], sink: Sink
    ) -> None:
        self._parts = parts
        self._file = parts.joined()
        self._directory = directory
        self._start = start
        self._shift = shift
        self._kept = kept
        self._sink = sink
        self._spans: list[tuple[int, int]] = []

    def run(self, budget: Budget) -> None:
        """Check what the budget allows; mark what is wrong, name what is left."""
        for record in self._kept:
            if record.disk >= len(self._parts):
                self._sink.mark(
                    Mark.CORRUPT, f"a member lies on disk {record.disk + 1} of {len(self._parts)}"
                )
                continue
            member = member_at(self._file, record, position_of(record, self._parts, self._shift))
            end = end_of(self._file, member) if member is not None else None
            if member is None or end is None:
                self._sink.mark(Mark.CORRUPT, "a local header contradicts the central directory")
                continue
            self._spans.append((member.position, end))
            if member.redated:
                self._sink.leave(Unchecked.FIELDS, member.position + TIME, 4)
            self._check(member, budget)
        self._explain()

    def _check(self, member: Member, budget: Budget) -> None:
        record, leave = member.record, self._sink.leave
        if record.packed == 0 and record.size == 0:
            return
        if record.flags & (ENCRYPTED | MASKED):
            leave(Unchecked.ENCRYPTED, member.data, record.packed)
        elif not member.readable:
            leave(Unchecked.METHOD, member.data, record.packed)
        elif not budget.take(record.packed + record.size):
            leave(Unchecked.BOUND, member.data, record.packed)
        elif not checksum_holds(self._file, member):
            self._sink.mark(Mark.CORRUPT, "a member does not match its checksum")
        elif record.method == LZMA:
            leave(
                Unchecked.FIELDS, member.data, LZMA_HEADER
            )  # which version packed it, how much memory it needs

    def _explain(self) -> None:
        """Account for every byte: members lie side by side up to the directory."""
        leave = self._sink.leave
        reached = 0
        for position, end in sorted(self._spans):
            if reached == 0 and position == 4 and self._file.read_at(0, 4) in SPANNING:
                reached = position
            if position > reached:
                leave(Unchecked.STRAY, reached, position - reached)
            # Of a local header, the version and the packer's effort; its extra fields.
            leave(Unchecked.FIELDS, position + 4, 3)
            reached = max(reached, end)
        for position, _ in self._spans:
            extra = self._file.read_at(position + 26, 4)
            name, length = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:], "little")
            leave(Unchecked.FIELDS, position + LOCAL.size + name, length)
        if self._start > reached:
            leave(Unchecked.STRAY, reached, self._start - reached)
        self._explain_directory()

    def _explain_directory(self) -> None:
        leave = self._sink.leave
        position = self._start
        for record in self._kept:
            leave(Unchecked.FIELDS, position + 4, 5)  # versions, the packer's effort
            leave(Unchecked.FIELDS, position + 36, 6)  # attributes
            tail = len(record.extra) + record.comment
            leave(Unchecked.FIELDS, position + RECORD.size + len(record.name), tail)
            position += record.length
        directory = self._directory
        comment = directory.comment_position
        if comment - END.size > directory.end_position:  # a zip64 end record: who made it, with what
            leave(Unchecked.FIELDS, directory.end_position + 12, 4)
            leave(
                Unchecked.FIELDS,
                directory.end_position + END64.size,
                comment - END.size - LOCATOR64.size - directory.end_position - END64.size,
            )
        stray = max(0, directory.trailing)
        leave(Unchecked.FIELDS, comment, self._parts.total - stray - comment)
        leave(Unchecked.STRAY, self._parts.total - stray, stray)
