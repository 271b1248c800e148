"""The fleet's side of parsing: hand a set's bytes to a bounded child and take its answer.

``Nursery`` is owned by whoever runs an event loop (one per process is enough) and is entered with
``async with``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from worker.archives import wire
from worker.domain.listing import Completeness, Entry, Limits, Listing, Mark
from worker.errors import RetryableError

if TYPE_CHECKING:
    from types import TracebackType

    from worker.archives.reader import Part
    from worker.domain.archive_name import ArchiveFormat, Scheme

# The child ends itself at its wall time; this is how much later we stop believing that.
GRACE_SECONDS = 5.0
UNFORESEEN = wire.STATUS.pack(-1)
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from worker.archives.nursery_process import main; main(int(sys.argv[2]))"
)
_ROOT = str(Path(__file__).resolve().parents[2])
_ENDINGS = {
    -signal.SIGALRM: (Mark.TIME_LIMIT, "parsing took longer than its wall time"),
    -signal.SIGXCPU: (Mark.TIME_LIMIT, "parsing took longer than its CPU time"),
    -signal.SIGKILL: (Mark.MEMORY_LIMIT, "parsing was killed, most likely for its memory"),
}


@dataclass(frozen=True, slots=True)
class SetBytes:
    """A set as the parsers need it: what its names say, and its parts in order."""

    format: ArchiveFormat
    scheme: Scheme
    parts: tuple[Part, ...]
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """Both answers about a set. A set whose parsing was cut off is not proven complete."""

    completeness: Completeness
    listing: Listing


@dataclass(frozen=True, slots=True)
class Preview:
    """A small JPEG, and the member that it was made from."""

    path: str
    jpeg: bytes


@dataclass(slots=True)
class _Answer:
    entries: list[Entry] = dataclasses.field(default_factory=list)
    picture: bytes = b""
    result: dict[str, Any] | None = None
    ending: int | None = None

    def death(self) -> tuple[Mark, str]:
        if self.ending is None:
            return Mark.CRASHED, "the parser ended without a word"
        return _ENDINGS.get(self.ending, (Mark.CRASHED, f"the parser ended with status {self.ending}"))


class Nursery:
    """Forks a bounded child per job from one preloaded process."""

    def __init__(self, *, max_children: int = 2) -> None:
        self._slots = asyncio.Semaphore(max_children)
        self._starting = asyncio.Lock()
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the process, and with it every child."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            await self._process.wait()
            self._process = None

    async def prove(self, archive: SetBytes, limits: Limits | None = None) -> Completeness:
        """Say whether the bytes prove the set whole; reads headers only."""
        answer = await self._run("prove", archive, limits or Limits())
        if answer.result is None:
            _, note = answer.death()
            return Completeness(complete=False, reason=note)
        return _completeness(answer.result)

    async def examine(self, archive: SetBytes, limits: Limits | None = None) -> Examination:
        """Prove and list a set."""
        answer = await self._run("examine", archive, limits or Limits())
        result = answer.result
        entries = tuple(answer.entries)
        if result is None:
            mark, note = answer.death()
            total = sum(entry.size for entry in entries)
            listing = Listing(archive.format, entries, len(entries), total, frozenset({mark}), (note,))
            return Examination(Completeness(complete=False, reason=note), listing)
        marks = frozenset(Mark(mark) for mark in result["marks"])
        listing = Listing(
            result["format"], entries, result["count"], result["total"], marks, tuple(result["notes"])
        )
        return Examination(_completeness(result), listing)

    async def preview(self, archive: SetBytes, limits: Limits | None = None) -> Preview | None:
        """A thumbnail of the best picture inside, or None if there is none that can be read."""
        answer = await self._run("preview", archive, limits or Limits())
        if answer.result is None or not answer.result["path"] or not answer.picture:
            return None
        return Preview(answer.result["path"], answer.picture)

    async def _run(self, task: str, archive: SetBytes, limits: Limits) -> _Answer:
        job = {
            "task": task,
            "format": archive.format,
            "scheme": archive.scheme,
            "indices": archive.indices,
            "sizes": [part.reader.size for part in archive.parts],
            "limits": dataclasses.asdict(limits),
        }
        async with self._slots:
            channel = await self._fork()
            reader, writer = await asyncio.open_connection(sock=channel, limit=wire.MAX_READ)
            try:
                writer.write(wire.pack(wire.Frame.JOB, json.dumps(job).encode()))
                return await _converse(reader, writer, archive, limits)
            finally:
                # Hanging up is what kills a child that still runs.
                writer.close()

    async def _fork(self) -> socket.socket:
        """A channel to a fresh child."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                await self._start()
        ours, theirs = socket.socketpair()
        with theirs:
            assert self._control is not None
            try:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise RetryableError("the parser process is gone", remedy="it is started anew") from error
        ours.setblocking(False)
        return ours

    async def _start(self) -> None:
        await self.close()
        self._control, theirs = socket.socketpair()
        with theirs:
            # No environment: settings and secrets are none of a parser's business.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _START, _ROOT, str(theirs.fileno()),
                pass_fds=[theirs.fileno()], stdin=asyncio.subprocess.DEVNULL, env={"LC_ALL": "C.UTF-8"},
            )  # fmt: skip


def _completeness(result: dict[str, Any]) -> Completeness:
    if result["completeness"] is None:
        return Completeness(complete=False, reason="parsing ended before the parts could be judged")
    complete, missing, reason = result["completeness"]
    return Completeness(complete, tuple(missing), reason)


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, archive: SetBytes, limits: Limits
) -> _Answer:
    answer = _Answer()
    room = limits.output_bytes
    try:
        async with asyncio.timeout(limits.wall_seconds + GRACE_SECONDS):
            while answer.result is None and answer.ending is None and room > 0:
                frame, payload = await _receive(reader)
                if frame is wire.Frame.READ:
                    part, offset, length = wire.READ.unpack(payload)
                    writer.write(wire.pack(wire.Frame.DATA, await _read(archive.parts[part], offset, length)))
                    continue
                room -= len(payload)
                _take(answer, frame, payload)
    except TimeoutError:
        answer.ending = -signal.SIGALRM
    return answer


def _take(answer: _Answer, frame: wire.Frame, payload: bytes) -> None:
    if frame is wire.Frame.ENTRIES:
        answer.entries.extend(map(Entry._make, json.loads(payload)))
    elif frame is wire.Frame.PICTURE:
        answer.picture = payload
    elif frame is wire.Frame.RESULT:
        answer.result = json.loads(payload)
    elif frame is wire.Frame.STATUS:
        (answer.ending,) = wire.STATUS.unpack(payload)


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
