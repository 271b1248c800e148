"""One job's talk with its child: feed it the bytes it asks for, take what it finds, notice how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.archives import wire
from worker.archives.sink import clean_text
from worker.domain.listing import Completeness, Entry, Evidence, Limits, Mark
from worker.errors import RetryableError

if TYPE_CHECKING:
    from worker.archives.reader import Part, SetBytes

# The child ends itself at its wall time; this is how much later we stop believing that.
GRACE_SECONDS = 5.0
# A reason is kept, and read by people: a child that was taken over could write a book.
MOST_WORDS = 1000
UNFORESEEN = wire.STATUS.pack(-1)
_ENDINGS = {
    -signal.SIGALRM: (Mark.TIME_LIMIT, "parsing took longer than its wall time"),
    -signal.SIGXCPU: (Mark.TIME_LIMIT, "parsing took longer than its CPU time"),
    -signal.SIGKILL: (Mark.MEMORY_LIMIT, "parsing was killed, most likely for its memory"),
}


@dataclass(slots=True)
class Result:
    """The child's last word; which values it sets depends on the job."""

    format: str = ""
    count: int = 0
    total: int = 0
    marks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unchecked: dict[str, int] = field(default_factory=dict)
    path: str | None = None
    kept: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """What came back. Without a ``result`` the child died, and :meth:`death` says of what."""

    entries: list[Entry] = field(default_factory=list)
    picture: bytes = b""
    proof: Completeness | None = None
    listed: Result | None = None  # what was known before the contents were checked
    result: Result | None = None
    ending: int | None = None

    def death(self) -> tuple[Mark, str]:
        """The mark for the way in which the child ended, and words for it."""
        if self.ending is None:
            return Mark.CRASHED, "the parser ended without a word"
        return _ENDINGS.get(self.ending, (Mark.CRASHED, f"the parser ended with status {self.ending}"))


async def converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, archive: SetBytes, limits: Limits
) -> Answer:
    """Talk until the result, the child's end, or the limit of time or output.

    An error of a reader is raised to the caller: bytes that cannot be had say nothing about the archive.
    """
    answer = Answer()
    room = limits.output_bytes
    try:
        async with asyncio.timeout(limits.wall_seconds + GRACE_SECONDS) as deadline:
            while answer.result is None and answer.ending is None and room > 0:
                frame, payload = await _receive(reader)
                if frame is wire.Frame.READ and (wanted := _wanted(archive, payload)):
                    writer.write(wire.pack(wire.Frame.DATA, await _read(*wanted)))
                    continue
                room -= len(payload)
                _take(answer, frame, payload)
    except TimeoutError:
        if not deadline.expired():
            raise  # the reader's own, which says nothing about the archive
        answer.ending = -signal.SIGALRM
    return answer


def _wanted(archive: SetBytes, payload: bytes) -> tuple[Part, int, int] | None:
    """What the child asks for; None if it asks for what there is not."""
    if len(payload) != wire.READ.size:
        return None
    number, offset, length = wire.READ.unpack(payload)
    if number >= len(archive.parts) or length > wire.MAX_READ:
        return None
    part = archive.parts[number]
    return (part, offset, length) if offset + length <= part.reader.size else None


def _take(answer: Answer, frame: wire.Frame, payload: bytes) -> None:
    """Remember what the child says. One that breaks the rules was taken over, and is heard no more."""
    try:
        if frame is wire.Frame.ENTRIES:
            answer.entries.extend(map(Entry._make, json.loads(payload)))
        elif frame is wire.Frame.PICTURE:
            answer.picture = payload
        elif frame is wire.Frame.PROOF:
            complete, missing, reason, evidence, undecided = json.loads(payload)
            answer.proof = Completeness(
                bool(complete),
                tuple(map(int, missing)),
                clean_text(str(reason)[:MOST_WORDS]),
                tuple(map(Evidence, evidence)),
                bool(undecided),
            )
        elif frame is wire.Frame.LISTED:
            answer.listed = Result(**json.loads(payload))
        elif frame is wire.Frame.RESULT:
            answer.result = Result(**json.loads(payload))
        elif frame is wire.Frame.STATUS:
            (answer.ending,) = wire.STATUS.unpack(payload)
        else:
            answer.ending = -1
    except (TypeError, ValueError, OverflowError, RecursionError, struct.error):
        answer.ending = -1


async def _receive(reader: asyncio.StreamReader) -> tuple[wire.Frame, bytes]:
    """The next frame. A child that hangs up or breaks the protocol has ended in a way nobody foresaw."""
    try:
        letter, length = wire.HEADER.unpack(await reader.readexactly(wire.HEADER.size))
        if length > wire.MAX_FRAME:
            return wire.Frame.STATUS, UNFORESEEN
        return wire.Frame(letter), await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return wire.Frame.STATUS, UNFORESEEN


async def _read(part: Part, offset: int, length: int) -> bytes:
    data = await part.reader.read_at(offset, length)
    if len(data) != length:
        raise RetryableError(f"{part.name!r} gave {len(data)} of {length} bytes at {offset}")
    return data
