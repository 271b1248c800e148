"""The fleet's side of parsing: hand a set's bytes to a bounded child and take its answer.

``Nursery`` is owned by whoever runs an event loop (one per process is enough) and is entered with
``async with``.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from worker.archives import wire
from worker.archives.child_words import Words
from worker.archives.conversation import Answer, converse
from worker.archives.rar_on_disk import volumes_on_disk
from worker.archives.reader import BytesReader, Part, SetBytes
from worker.domain.archive_name import ArchiveFormat, Scheme
from worker.domain.listing import Completeness, Limits, Listing, Mark, Unchecked
from worker.errors import RetryableError

if TYPE_CHECKING:
    from types import TracebackType


OPENING = ("examine", "preview")
START_SECONDS = 60.0
STOP_SECONDS = 5.0
# A Ctrl-C is meant for the worker, also while this one still imports.
# Python 3.15 imports some modules at their first use. That would be in a child, which can open no file.
_START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path.insert(0, sys.argv[1]); "
    "hasattr(sys, 'set_lazy_imports_filter') and sys.set_lazy_imports_filter(lambda *_: False); "
    "from worker.archives.nursery_process import main; main(int(sys.argv[2]))"
)
_ROOT = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True, slots=True)
class Examination:
    """Both answers about a set."""

    completeness: Completeness
    listing: Listing


@dataclass(frozen=True, slots=True)
class Preview:
    """A small JPEG, and the member that it was made from."""

    path: str
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a parser has given up for good, and the program that unpacks RAR, if there is one."""

    kept: tuple[str, ...]
    tool: str | None


class Nursery:
    """Forks a bounded child per job from one preloaded process."""

    def __init__(self, *, max_children: int = 2, max_proving: int = 8) -> None:
        self._slots = asyncio.Semaphore(max_children)
        # Children that read headers from a server wait more than they work.
        self._proving = asyncio.Semaphore(max_proving)
        self._starting = asyncio.Lock()
        self._control: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._words: Words | None = None

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
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
            self._process = None
        if self._words is not None:
            await self._words.heard()

    async def prove(self, archive: SetBytes, limits: Limits | None = None) -> Completeness:
        """Say whether the bytes prove the set whole, and what speaks for each of its parts.

        Made for parts that are still on a server: it reads headers, and at most ``limits.prove_bytes`` of
        contents where headers leave parts unproven. Not ``complete``: wait for the parts in ``missing``, or
        for what ``reason`` says. ``complete``: nothing contradicts; if ``unproven`` is not empty, ask once
        more with ``LOCAL`` limits when the parts lie on disk, before anything is published. A single file is
        always complete as posted, unless it says itself that it is one of several.

        Raises what a reader raises, and :class:`RetryableError` if the parsers cannot be started.
        """
        slots = self._proving if limits is None else self._slots
        return _completeness(archive, await self._run("prove", archive, limits or Limits(), slots))

    async def examine(self, archive: SetBytes, limits: Limits | None = None) -> Examination:
        """Prove a set, list it, and compare up to ``limits.verify_bytes`` of contents with their checksums.

        Whatever the bytes are, this returns: what is wrong with them is in the listing's ``marks``, what was
        compared with nothing in its ``unchecked``. Raises as :meth:`prove` does.
        """
        answer = await self._run("examine", archive, limits or Limits())
        return Examination(_completeness(archive, answer), _listing(archive, answer))

    async def preview(self, archive: SetBytes, limits: Limits | None = None) -> Preview | None:
        """A thumbnail of the best picture inside, or None if there is none that can be read."""
        answer = await self._run("preview", archive, limits or Limits())
        if answer.result is None or not answer.result.path or not answer.picture:
            return None
        return Preview(answer.result.path, answer.picture)

    async def thumbnail(self, picture: bytes, limits: Limits | None = None) -> bytes | None:
        """A small JPEG of a picture that stands by itself; None if it cannot be read."""
        alone = SetBytes(ArchiveFormat.ZIP, Scheme.SINGLE, (Part("picture", BytesReader(picture)),), (0,))
        return (await self._run("thumbnail", alone, limits or Limits())).picture or None

    async def _run(
        self, task: str, archive: SetBytes, limits: Limits, slots: asyncio.Semaphore | None = None
    ) -> Answer:
        job = {
            "task": task,
            "format": archive.format,
            "scheme": archive.scheme,
            "indices": archive.indices,
            "sizes": [part.reader.size for part in archive.parts],
            "limits": dataclasses.asdict(limits),
        }
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(slots or self._slots)
            job["volumes"] = stack.enter_context(volumes_on_disk(archive)) if task in OPENING else []
            channel, control = await self._fork()
            reader, writer = await asyncio.open_connection(sock=channel, limit=wire.MAX_READ)
            try:
                writer.write(wire.pack(wire.Frame.JOB, json.dumps(job).encode()))
                answer = await converse(reader, writer, archive, limits)
                if answer.result is None and _is_gone(control):
                    raise _gone()
                return answer
            finally:
                # Hanging up is what kills a child that still runs.
                writer.close()

    async def confinement(self) -> Confinement:
        """What holds a parser here, and which program opens RAR."""
        nothing = SetBytes(ArchiveFormat.ZIP, Scheme.SINGLE, (), ())
        told = (await self._run("confinement", nothing, Limits())).result
        return Confinement(tuple(told.kept), told.path) if told else Confinement((), None)

    async def warm(self) -> None:
        """Start the process ahead of the first job, which would wait for it."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                await self._start()

    async def _fork(self) -> tuple[socket.socket, socket.socket]:
        """A channel to a fresh child, and one to the process that has it."""
        await self.warm()
        ours, theirs = socket.socketpair()
        with theirs:
            assert self._control is not None
            try:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise _gone() from error
        ours.setblocking(False)
        return ours, self._control

    async def _start(self) -> None:
        await self.close()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = await start_process(theirs.fileno())
            assert self._process.stdout is not None
            self._words = Words(self._process.stdout)
        self._control.setblocking(False)
        try:
            async with asyncio.timeout(START_SECONDS):
                ready = await asyncio.get_running_loop().sock_recv(self._control, 1)
        except TimeoutError:
            ready = b""
        if not ready:
            await self.close()
            said = f"; it says: {self._words.last}" if self._words.last else ""
            raise RetryableError("the parser process does not start", remedy=f"it is tried again{said}")


async def start_process(control: int) -> asyncio.subprocess.Process:
    """The process that forks parsers, listening on this descriptor."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _START, _ROOT, str(control)),
        pass_fds=[control],
        stdin=asyncio.subprocess.DEVNULL,
        # No terminal of the worker's reaches it: who has one can type into it.
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        # Settings and secrets in the environment are none of a parser's business.
        env=_environment(),
    )


def _gone() -> RetryableError:
    return RetryableError("the parser process is gone", remedy="it is started anew")


def _is_gone(control: socket.socket) -> bool:
    """Whether the parser process has ended, which no archive can bring about."""
    try:
        return not control.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _environment() -> dict[str, str]:
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH")
    return {"LC_ALL": "C.UTF-8"} | {name: os.environ[name] for name in kept if name in os.environ}


def _completeness(archive: SetBytes, answer: Answer) -> Completeness:
    if answer.proof is not None:
        return answer.proof
    # A single file is complete as posted, however badly it treats its parser.
    return Completeness(complete=archive.scheme is Scheme.SINGLE, reason=answer.death()[1])


def _listing(archive: SetBytes, answer: Answer) -> Listing:
    """What the child told, whole or up to where it died."""
    entries = tuple(answer.entries)
    told = answer.result or answer.listed
    if told is None:
        mark, note = answer.death()
        total = sum(entry.size for entry in entries)
        return Listing(archive.format, entries, len(entries), total, frozenset({mark}), (note,))
    marks, notes = {Mark(mark) for mark in told.marks}, list(told.notes)
    unchecked = {Unchecked(reason): int(size) for reason, size in told.unchecked.items()}
    if answer.result is None:
        mark, note = answer.death()
        if mark is Mark.CRASHED:
            # Decoders in C are known to overrun on damaged data, and on nothing else.
            marks.add(Mark.CORRUPT)
            notes.append(f"its contents cannot be unpacked: {note}")
        else:
            unchecked[Unchecked.BOUND] = sum(part.reader.size for part in archive.parts)
    return Listing(
        told.format, entries, told.count, told.total, frozenset(marks), tuple(notes), tuple(unchecked.items())
    )
