"""Members of a RAR that lies whole on the disk, opened by ``rarfile`` in a process of its own.

It is forked before its parser gives up its rights, and gives up its own, but for reading the volumes and
starting the one program. The parser asks with a line of JSON, and is answered with one, or with the bytes of
a member.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import rarfile

from worker.archives.confinement import confine_opener, die_with_parent
from worker.archives.rar_tool import Driver, Tool, what_it_needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.domain.listing import Limits

PIECE = 256 * 1024
LENGTH = struct.Struct(">Q")
LAST_DESCRIPTOR = 4096
# A program takes such a name for a pattern, a list of names, or an option.
TAKEN_FOR_MORE = frozenset("*?[]\\")
DAMAGED = (rarfile.BadRarFile, rarfile.RarCRCError, rarfile.RarFatalError)


class Member(NamedTuple):
    """A packed member, by what its headers say: rarfile must have read the same."""

    size: int
    crc32: int


class Opener:
    """The parser's end."""

    def __init__(self, asking: IO[bytes], answers: IO[bytes]) -> None:
        self._asking = asking
        self._answers = answers

    def hold(self, members: Sequence[Member], seconds: float) -> bool | None:
        """Whether each unpacks to what its checksum says; None where that cannot be found out here."""
        holds: bool | None = json.loads(self._ask("hold", members, seconds) or b"null")
        return holds

    def read(self, members: Sequence[Member], number: int) -> bytes:
        """The contents of one of them; nothing if they cannot be had, or are damaged."""
        return self._ask("read", members, number)

    def _ask(self, what: str, members: Sequence[Member], more: float) -> bytes:
        try:
            self._asking.write(json.dumps([what, members, more]).encode() + b"\n")
            self._asking.flush()
            head = self._answers.read(LENGTH.size)
            return self._answers.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""
        except OSError:
            # It has ended: of its time, its memory, or the archive.
            return b""


@contextlib.contextmanager
def opener(tool: Tool | None, volumes: Sequence[str], limits: Limits) -> Iterator[Opener | None]:
    """Start the process and leave it waiting; None where there is no program for these volumes."""
    if tool is None or not volumes or (len(volumes) > 1 and not tool.takes_volumes):
        yield None
        return
    (asked, asking), (answers, answering) = os.pipe(), os.pipe()
    parser = os.getpid()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            die_with_parent()
            if os.getppid() == parser:
                _keep_only(asked, answering)
                driver = Driver(tool)
                confine_opener(limits, what_it_needs(tool, volumes))
                _serve(asked, answering, driver, volumes[0], limits)
                status = 0
        finally:
            # Whatever went wrong, it must never go on as a second parser.
            os._exit(status)
    os.close(asked)
    os.close(answering)
    # Closing them is what ends it.
    with os.fdopen(asking, "wb") as to, os.fdopen(answers, "rb") as back:
        yield Opener(to, back)
    os.waitpid(process, 0)


def _keep_only(*kept: int) -> None:
    """The channel to the fleet is the parser's alone."""
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, LAST_DESCRIPTOR)


def _serve(asked: int, answering: int, driver: Driver, path: str, limits: Limits) -> None:
    with os.fdopen(asked, "rb") as questions, os.fdopen(answering, "wb") as answers:
        for question in questions:
            what, members, more = json.loads(question)
            wanted = [Member(*member) for member in members]
            if what == "hold":
                answer = json.dumps(_hold(driver, path, wanted, more)).encode()
            else:
                answer = _read(path, wanted, int(more), limits.picture_bytes)
            answers.write(LENGTH.pack(len(answer)) + answer)
            answers.flush()


def _hold(driver: Driver, path: str, wanted: list[Member], seconds: float) -> bool | None:
    deadline = time.monotonic() + seconds
    try:
        archive = rarfile.RarFile(path)
        found = _packed(archive)
    except (rarfile.Error, OSError, ValueError):
        return None
    if found is None or [Member(each.file_size, each.CRC) for each in found] != wanted:
        return None
    for member in found:
        try:
            with archive.open(member) as file:
                while file.read(PIECE):
                    if time.monotonic() >= deadline:
                        return None
        except DAMAGED:
            return None if driver.gave_up() else False
        except (rarfile.Error, OSError, ValueError):
            return None
    return True


def _read(path: str, wanted: list[Member], number: int, limit: int) -> bytes:
    try:
        archive = rarfile.RarFile(path)
        found = _packed(archive)
        if found is None or [Member(each.file_size, each.CRC) for each in found] != wanted:
            return b""
        if found[number].file_size > limit:
            return b""
        with archive.open(found[number]) as file:
            contents: bytes = file.read()
            return contents
    except (rarfile.Error, OSError, ValueError, LookupError):
        return b""


def _packed(archive: Any) -> list[Any] | None:
    """The members that only the program opens; None if it could take a name for another's."""
    members = [
        member
        for member in archive.infolist()
        if member.is_file()
        and member.file_redir is None
        and member.compress_type != rarfile.RAR_M0
        and not member.needs_password()
    ]
    names = [member.filename for member in archive.infolist()]
    if len(set(names)) < len(names):
        return None
    for member in members:
        if TAKEN_FOR_MORE & set(member.filename) or member.filename.startswith(("@", "-")):
            return None
    return members
