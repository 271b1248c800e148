"""A process that can change no file, by Linux's Landlock.

Limits on descriptors and on file sizes leave what takes neither: making and removing names. Landlock forbids
that too, and asks for no privilege. Where the kernel has none, the limits are all there is.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

# The numbers are the same on every architecture that has these calls.
CREATE_RULESET, RESTRICT_SELF = ctypes.c_long(444), ctypes.c_long(446)
ASK_VERSION = 1
SET_NO_NEW_PRIVILEGES = 38
WRITE_FILE, REMOVE_AND_MAKE, LINK_ELSEWHERE, TRUNCATE = 0x2, 0x1FF0, 0x2000, 0x4000
# By the version that brought them: a kernel refuses rights that it does not know.
RIGHTS = ((1, WRITE_FILE | REMOVE_AND_MAKE), (2, LINK_ELSEWHERE), (3, TRUNCATE))
LIBC: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def forbid_changes() -> bool:
    """Give up, for good, the rights to write, make and remove files; False where nothing keeps that.

    Files that are open already stay as they are, and so does what only changes a file's mode, owner or times.
    """
    if LIBC is None:
        return False
    version = LIBC.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)
    given_up = struct.pack("=Q", sum(rights for since, rights in RIGHTS if since <= version))
    ruleset = LIBC.syscall(CREATE_RULESET, given_up, ctypes.c_size_t(len(given_up)), 0)
    if ruleset < 0:
        return False
    LIBC.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    kept = bool(LIBC.syscall(RESTRICT_SELF, ruleset, 0) == 0)
    os.close(ruleset)
    return kept
