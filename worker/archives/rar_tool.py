"""The program on this machine that unpacks RAR, and ``rarfile`` told to drive that one.

No free library unpacks RAR. ``rarfile`` finds the members and starts the program; where it would write a
file, or start the program for a comment, it is told not to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import rarfile

from worker.archives.confinement import become_program
from worker.archives.landlock import EXECUTE, READ_DIR, READ_FILE, Reachable

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 10
PLACES = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin:/opt/homebrew/opt/libarchive/bin"
# What any program needs to start: its libraries.
LIBRARIES = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/lib",
    "/nix/store", "/opt/homebrew", "/etc/ld.so.cache",
)  # fmt: skip
# What a program says when the fault is its own: a method it does not know, memory it may not have, no
# password.
EXCUSES = (b"upport", b"lloc", b"memory", b"ncrypt", b"assword", b"assphrase", b"as archive", b"not found")
WORDS = 4 * 1024


@dataclass(frozen=True, slots=True)
class Tool:
    """One program, and how rarfile calls it."""

    name: str
    path: str
    # bsdtar takes volumes one by one, and knows the current methods alone.
    takes_volumes: bool


@dataclass(frozen=True, slots=True)
class _Kind:
    # What shows that it does unpack RAR: others carry the name too, and some are built without.
    question: tuple[str, ...]
    answer: bytes
    setup: str
    variable: str
    takes_volumes: bool = True


KINDS = {
    "unrar": _Kind((), b"Alexander Roshal", "UNRAR_CONFIG", "UNRAR_TOOL"),
    "7zz": _Kind(("i",), b"Rar5", "SEVENZIP2_CONFIG", "SEVENZIP2_TOOL"),
    "7z": _Kind(("i",), b"Rar5", "SEVENZIP_CONFIG", "SEVENZIP_TOOL"),
    "bsdtar": _Kind(("--version",), b"libarchive", "BSDTAR_CONFIG", "BSDTAR_TOOL", takes_volumes=False),
}


def _search_path() -> str:
    """Where to look. An empty or relative entry would be the working folder, and anybody's programs."""
    return ":".join(
        each for each in f"{os.environ.get('PATH', '')}:{PLACES}".split(":") if Path(each).is_absolute()
    )


def find_tool() -> Tool | None:
    """The first of them that is there and unpacks RAR."""
    for name, kind in KINDS.items():
        path = shutil.which(name, path=_search_path())
        if path is None:
            continue
        try:
            said = subprocess.run(  # noqa: S603, PLW1510 - one of four programs; it is its words that count
                [path, *kind.question], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
            ).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        if kind.answer in said:
            return Tool(name, str(Path(path).resolve()), kind.takes_volumes)
    return None


def what_it_needs(tool: Tool, volumes: Sequence[str]) -> list[Reachable]:
    """Its own file, its libraries and the volumes: nothing else of this machine is there for it."""
    return [
        Reachable(tool.path, EXECUTE | READ_FILE),
        *(Reachable(path, EXECUTE | READ_FILE) for path in LIBRARIES),
        *(Reachable(os.path.realpath(path), READ_FILE) for path in volumes),
        Reachable(str(Path(volumes[0]).parent), READ_DIR),
    ]


class Driver:
    """``rarfile`` in this process, with this tool; made before rights are given up."""

    def __init__(self, tool: Tool) -> None:
        kind = KINDS[tool.name]
        setattr(rarfile, kind.variable, tool.path)
        rarfile.CURRENT_SETUP = rarfile.ToolSetup(getattr(rarfile, kind.setup))
        # It would write an archive of the one member into a file.
        rarfile.USE_EXTRACT_HACK = 0
        # It would write a packed comment into a file and start the program for it.
        rarfile.rar3_decompress = lambda *_arguments, **_options: b""
        # It would mix what the program says into what it unpacks.
        rarfile.custom_popen = self._start
        self._nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._said = b""
        self._errors: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        self._forget()
        self._errors, theirs = os.pipe()
        # Full, it takes no more; that the program is heard to its end is worth less than that it ends.
        os.set_blocking(theirs, False)
        os.set_blocking(self._errors, False)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the program that was found
                command, stdin=self._nothing, stdout=subprocess.PIPE, stderr=theirs, bufsize=0, cwd="/",
                env={"LC_ALL": "C.UTF-8"}, preexec_fn=become_program,  # noqa: PLW1509 - this process has no threads
            )  # fmt: skip
        finally:
            os.close(theirs)
        return self._process

    def _forget(self) -> None:
        if self._errors is not None:
            os.close(self._errors)
        self._errors = self._process = None

    def gave_up(self) -> bool:
        """Whether the program failed for reasons that say nothing about the archive."""
        if self._process is None or self._errors is None:
            return True
        if self._process.wait() < 0:
            # Killed: it had used up its time, or its memory.
            return True
        try:
            said = os.read(self._errors, WORDS)
        except BlockingIOError:
            said = b""
        return any(excuse in said for excuse in EXCUSES)
