"""Which files a process can reach, and whether it reaches a network, by Linux's Landlock.

It asks for no privilege, holds for what the process starts as well, and cannot be undone. Where the kernel
has none, the limits on descriptors and file sizes are all there is.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The numbers are the same on every architecture that has these calls.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = ctypes.c_long(444), ctypes.c_long(445), ctypes.c_long(446)
ASK_VERSION, BENEATH = 1, 1
SET_NO_NEW_PRIVILEGES = 38
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 0x1, 0x2, 0x4, 0x8
REMOVE_AND_MAKE, LINK_ELSEWHERE, TRUNCATE, CONTROL_DEVICES = 0x1FF0, 0x2000, 0x4000, 0x8000
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE
# By the version that brought them: a kernel refuses rights that it does not know.
RIGHTS = (
    (1, EXECUTE | WRITE_FILE | READ_FILE | READ_DIR | REMOVE_AND_MAKE),
    (2, LINK_ELSEWHERE),
    (3, TRUNCATE),
    (5, CONTROL_DEVICES),
)
NETWORK_SINCE, BIND_AND_CONNECT = 4, 0x3
SCOPES_SINCE, ABSTRACT_SOCKETS_AND_SIGNALS = 6, 0x3
LIBC: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Reachable:
    """A file, or a folder with all below it, and what may be done with it."""

    path: str
    rights: int


def version() -> int:
    """Which one the kernel has; 0 where it has none."""
    if LIBC is None:
        return 0
    return max(0, int(LIBC.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)))


def restrict(reachable: Iterable[Reachable] = ()) -> bool:
    """Give up, for good, every file but these, and TCP; False where nothing keeps that.

    Files that are open already stay as they are, and so does what only changes a file's mode, owner or times.
    """
    has = version()
    if LIBC is None or not has:
        return False
    handled = sum(rights for since, rights in RIGHTS if since <= has)
    network = BIND_AND_CONNECT if has >= NETWORK_SINCE else 0
    scopes = ABSTRACT_SOCKETS_AND_SIGNALS if has >= SCOPES_SINCE else 0
    # A kernel takes a longer form than its own as long as the rest is zeros.
    form = struct.pack("=QQQ", handled, network, scopes)
    ruleset = LIBC.syscall(CREATE_RULESET, form, ctypes.c_size_t(len(form)), 0)
    if ruleset < 0:
        return False
    try:
        for each in reachable:
            _allow(LIBC, ruleset, each, handled)
        LIBC.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(LIBC.syscall(RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, each: Reachable, handled: int) -> None:
    """What is not there needs no rule."""
    try:
        place = os.open(each.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = each.rights & handled
        if not os.path.isdir(each.path):  # noqa: PTH112 - nothing may be imported lazily here
            rights &= OF_A_FILE
        rule = struct.pack("=Qi", rights, place)
        libc.syscall(ADD_RULE, ruleset, BENEATH, rule, 0)
    finally:
        os.close(place)
