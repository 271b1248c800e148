"""Giving up every right that the work on foreign bytes does not need: the one place where that is done."""

from __future__ import annotations

import ctypes
import resource
import signal
import struct
from typing import TYPE_CHECKING

from worker.archives.call_filter import refuse_calls
from worker.archives.landlock import LIBC, SET_NO_NEW_PRIVILEGES, Reachable, restrict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.domain.listing import Limits

SET_DUMPABLE, DIE_WITH_PARENT = 4, 1
CAPABILITIES = 0x20080522
NO_DUMP, NO_CAPABILITY, NO_FILE, NO_SOCKET = "no core dump", "no capability", "no file", "no socket"
EVERYTHING = ("limits", NO_DUMP, NO_CAPABILITY, NO_FILE, NO_SOCKET)
# What a program that unpacks, and rarfile which drives it, hold open at once.
DESCRIPTORS = 64


def confine_parser(limits: Limits) -> list[str]:
    """For a process that gets all its bytes over one channel, and opens nothing; what is in force then."""
    kept = _confine(limits, (), programs=False)
    # Open descriptors stay usable; a new one, for a file, a pipe or a socket, cannot be had.
    _limit(resource.RLIMIT_NOFILE, 0)
    return kept


def confine_opener(limits: Limits, reachable: Sequence[Reachable]) -> list[str]:
    """For a process that reads these files, and starts the program that unpacks them."""
    _limit(resource.RLIMIT_NOFILE, DESCRIPTORS)
    return _confine(limits, reachable, programs=True)


def die_with_parent() -> None:
    """Be killed as soon as the process that has started this one ends, however it ends."""
    if LIBC is not None:
        LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def become_program() -> None:
    """For the process that is about to become a program: it stays one process, and ends with its parent."""
    die_with_parent()
    refuse_calls(programs=True, processes=False)


def _confine(limits: Limits, reachable: Sequence[Reachable], *, programs: bool) -> list[str]:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds)
    # The soft limit ends the child by SIGXCPU, which tells CPU time from other reasons to be killed.
    _limit(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 5)
    _limit(resource.RLIMIT_AS, limits.memory)
    # py7zr reads this one to size its buffers; without it, it would want to open /proc.
    _limit(resource.RLIMIT_DATA, limits.memory)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    kept = ["limits"]
    for name, done in (
        (NO_DUMP, _hide()),
        (NO_CAPABILITY, _drop_capabilities()),
        (NO_FILE, restrict(reachable)),
        (NO_SOCKET, refuse_calls(programs=programs, processes=programs)),
    ):
        kept += [name] if done else []
    return kept


def _hide() -> bool:
    """No dump of its memory, and no look into it by other processes of the user."""
    return LIBC is not None and bool(LIBC.prctl(SET_DUMPABLE, 0, 0, 0, 0) == 0)


def _drop_capabilities() -> bool:
    """What root may do beyond its own files; a program that it starts gets none of it back."""
    if LIBC is None:
        return False
    LIBC.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITIES, 0))
    return bool(LIBC.capset(header, ctypes.create_string_buffer(24)) == 0)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    _, ceiling = resource.getrlimit(kind)
    hard = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    try:
        resource.setrlimit(kind, (soft, hard))
    except (ValueError, OSError):
        # macOS refuses some of these; the wall time, which it keeps, still bounds the child.
        return
