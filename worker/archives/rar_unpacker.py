"""RAR's compression, undone by a program found on the machine.

No free library unpacks RAR, but libarchive's ``bsdtar`` does, from a pipe: volumes are fed to it end to end,
and what it writes is every member's contents end to end. It is started before the child gives up its rights,
waits on its pipe under limits of its own, and ends when that pipe is closed, whatever became of the child.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from worker.archives.landlock import forbid_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from worker.domain.listing import Limits

PROGRAM = shutil.which("bsdtar", path="/usr/bin:/bin:/usr/local/bin:/opt/homebrew/opt/libarchive/bin")
PIPE_PIECE = 256 * 1024
WORDS = 4 * 1024
DESCRIPTORS = 32
# What it says when the fault is its own: a method it does not know, memory it may not have, no password.
EXCUSES = (b"upport", b"lloc", b"memory", b"ncrypt", b"assphrase")


class Unpacker:
    """One run of the program over one stream of volumes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._words = b""
        self._failure: BaseException | None = None

    @property
    def gave_up(self) -> bool:
        """Whether the program could not do its work for reasons that say nothing about the archive."""
        return any(excuse in self._words for excuse in EXCUSES)

    def unpack(self, packed: Iterable[bytes]) -> Iterator[bytes]:
        """Feed the volumes and yield what comes out, until the program ends or nobody asks for more."""
        assert self._process.stdout is not None
        threads = [
            threading.Thread(target=self._feed, args=(packed,)),
            threading.Thread(target=self._listen),
        ]
        for thread in threads:
            thread.start()
        try:
            while piece := self._process.stdout.read(PIPE_PIECE):
                yield piece
        finally:
            # The channel to the fleet is free for others only when nothing more is read for the program.
            self._process.kill()
            for thread in threads:
                thread.join()
        if self._failure is not None:
            raise self._failure

    def _feed(self, packed: Iterable[bytes]) -> None:
        assert self._process.stdin is not None
        try:
            for piece in packed:
                self._process.stdin.write(piece)
            self._process.stdin.close()
        except BrokenPipeError:
            return  # it has what it wants, or has given up
        except BaseException as failure:  # noqa: BLE001  # whatever reading raised is raised where it is asked for
            self._failure = failure
            self._process.kill()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        while words := self._process.stderr.read(WORDS):
            self._words = (self._words + words)[-2 * WORDS :]


@contextmanager
def unpacker(limits: Limits) -> Iterator[Unpacker | None]:
    """Start the program and leave it waiting; None where there is none."""
    if PROGRAM is None:
        yield None
        return
    with subprocess.Popen(  # noqa: S603  # a fixed program with fixed arguments
        [PROGRAM, "-xOf", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={"LC_ALL": "C.UTF-8"},
        preexec_fn=lambda: _confine(limits),  # noqa: PLW1509  # the process that forks has no threads
    ) as process:
        try:
            yield Unpacker(process)
        finally:
            process.kill()


def _confine(limits: Limits) -> None:
    forbid_changes()
    bounds = (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
    )
    for kind, bound in bounds:
        resource.setrlimit(kind, (bound, bound))
