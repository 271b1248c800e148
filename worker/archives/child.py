"""What runs in a parser child: one job, under limits that the kernel keeps.

By the time foreign bytes are read the process can open no file and no socket, start no program, and reach no
other process (``confinement``); it has no terminal, and dies by itself when its memory, CPU time or wall time
is used up. It owns one channel, to the fleet, and for RAR the pipes of an opener that was started before and
has limits of its own.

What is left to code that took a parser over is in decision 006.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from worker.archives import wire
from worker.archives.confinement import confine_parser
from worker.archives.examine import actual_format, check, examine, judge, prove
from worker.archives.pictures import pictures
from worker.archives.rar_opener import opener
from worker.archives.rar_tool import Tool, find_tool
from worker.archives.sink import Sink, clean_text
from worker.archives.sniff import sniff
from worker.archives.source import Parts
from worker.archives.thumbnail import thumbnail
from worker.domain.archive_name import ArchiveFormat, Scheme
from worker.domain.listing import Limits, Mark, Unchecked

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from worker.archives.rar_opener import Opener
    from worker.archives.whole import Budget
    from worker.domain.listing import Completeness, Entry

OPENING = ("examine", "preview")
_tool: Tool | None = None


def preload() -> None:
    """Look once, before any foreign byte, for the program that unpacks RAR."""
    global _tool  # noqa: PLW0603 - of the process that children are forked from
    _tool = find_tool()


def run_job(channel: socket.socket) -> None:
    """Take the job from the channel, do it, send its result."""
    frame, payload = wire.receive(channel)
    if frame is not wire.Frame.JOB:
        raise ValueError("a job comes first")
    job = json.loads(payload)
    limits = Limits(**job["limits"])
    with contextlib.ExitStack() as stack:
        opens = job["task"] in OPENING and limits.verify_bytes
        started = stack.enter_context(opener(_tool, job["volumes"], limits)) if opens else None
        kept = confine_parser(limits)
        _Job(channel, job, limits, started, kept).run()


class _Job:
    def __init__(
        self,
        channel: socket.socket,
        job: dict[str, Any],
        limits: Limits,
        opened: Opener | None,
        kept: list[str],
    ) -> None:
        self._channel = channel
        self._limits = limits
        self._opener = opened
        self._kept = kept
        self._task: str = job["task"]
        self._format = ArchiveFormat(job["format"])
        self._scheme = Scheme(job["scheme"])
        self._indices: list[int] = job["indices"]
        self._parts = Parts(job["sizes"], self._fetch)

    def run(self) -> None:
        if self._task == "prove":
            form = sniff(self._parts.volume(0)) or self._format
            proven = prove(self._parts, form, self._scheme, self._indices, self._limits)
            self._send(wire.Frame.PROOF, _as_json(proven))
            self._finish({})
        elif self._task == "examine":
            self._examine()
        elif self._task == "preview":
            self._preview()
        elif self._task == "thumbnail":
            self._thumbnail()
        elif self._task == "confinement":
            tool = f"{_tool.name} ({_tool.path})" if _tool else None
            self._finish({"kept": self._kept, "path": tool})
        else:
            raise ValueError(f"unknown task {self._task!r}")

    def _examine(self) -> None:
        sink = Sink(self._send_entries, self._limits.entries, self._limits.output_bytes)
        form, contents, proven = self._format, None, None
        try:
            form = actual_format(self._parts, self._format, sink)
            # What the proof does not read for its own sake is read when contents are checked.
            bound = min(self._limits.prove_bytes, self._limits.verify_bytes)
            limits = dataclasses.replace(self._limits, prove_bytes=bound)
            proven = prove(self._parts, form, self._scheme, self._indices, limits)
            # Sent ahead: a listing that is cut off takes nothing away from what was proven.
            self._send(wire.Frame.PROOF, _as_json(proven))
            contents = examine(self._parts, form, self._scheme, proven, sink, self._opener)
        except MemoryError:
            sink.mark(Mark.MEMORY_LIMIT, f"parsing needs more than {self._limits.memory} bytes of memory")
        sink.close(self._parts.total)
        # Sent ahead: a decoder that dies on damaged contents takes nothing away from the listing.
        self._send(wire.Frame.LISTED, _summary(form, sink))
        # Of a set with parts missing, contents cannot match: that would only hide the reason behind others.
        if contents is not None and proven is not None and proven.complete:
            self._check(contents, sink)
        if proven is not None:
            self._send(wire.Frame.PROOF, _as_json(judge(proven, self._scheme, sink)))
        self._finish(_summary(form, sink))

    def _check(self, contents: Callable[[Budget], None], sink: Sink) -> None:
        if not self._limits.verify_bytes:
            sink.leave(Unchecked.BOUND, 0, self._parts.total)
            return
        try:
            check(contents, sink, self._limits)
        except MemoryError:
            sink.leave(Unchecked.BOUND, 0, self._parts.total)

    def _preview(self) -> None:
        """Send a thumbnail of the best picture that can be read; failing that, say so by sending none."""
        chosen = None
        form = sniff(self._parts.volume(0)) or self._format
        try:
            found = pictures(self._parts, form, self._scheme, self._limits.picture_bytes, self._opener)
            for path, picture in found:
                small = _thumbnail(picture)
                if small:
                    wire.send(self._channel, wire.Frame.PICTURE, small)
                    chosen = clean_text(path)
                    break
        except Exception:  # noqa: BLE001  # hostile bytes make the parsers raise anything; there is no preview then
            chosen = None
        self._finish({"path": chosen})

    def _thumbnail(self) -> None:
        """The one part is a picture by itself."""
        small = _thumbnail(self._parts.volume(0).read_at(0, self._parts.total))
        if small:
            wire.send(self._channel, wire.Frame.PICTURE, small)
        self._finish({})

    def _finish(self, result: dict[str, Any]) -> None:
        self._send(wire.Frame.RESULT, result)

    def _send_entries(self, entries: list[Entry]) -> None:
        self._send(wire.Frame.ENTRIES, entries)

    def _send(self, frame: wire.Frame, content: Any) -> None:
        wire.send(self._channel, frame, json.dumps(content, ensure_ascii=False).encode())

    def _fetch(self, part: int, offset: int, length: int) -> bytes:
        pieces: list[bytes] = []
        while length > 0:
            step = min(length, wire.MAX_READ)
            wire.send(self._channel, wire.Frame.READ, wire.READ.pack(part, offset, step))
            frame, payload = wire.receive(self._channel)
            if frame is not wire.Frame.DATA or len(payload) != step:
                raise OSError(f"the bytes of part {part} cannot be read")
            pieces.append(payload)
            offset += step
            length -= step
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _as_json(proven: Completeness) -> list[Any]:
    return [proven.complete, proven.missing, proven.reason, proven.evidence, proven.undecided]


def _summary(form: ArchiveFormat, sink: Sink) -> dict[str, Any]:
    return {
        "format": form, "count": sink.count, "total": sink.total_size, "marks": sorted(sink.marks),
        "notes": sink.notes, "unchecked": dict(sink.unchecked),
    }  # fmt: skip


def _thumbnail(picture: bytes) -> bytes:
    try:
        return thumbnail(picture)
    except Exception:  # noqa: BLE001  # a broken picture makes Pillow raise anything; the next one is tried
        return b""
