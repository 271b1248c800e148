"""Keeps the memory of file parts, instead of returning it to the system and asking for it again.

By default glibc maps every block of a part's size anew, and the kernel has to clear its pages each time.
"""

from __future__ import annotations

import contextlib
import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_BYTES = 32 << 20


def keep_large_blocks() -> None:
    """Ask glibc to serve large blocks from the heap; elsewhere nothing is done."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(_MMAP_THRESHOLD, _BYTES)
        libc.mallopt(_TRIM_THRESHOLD, 2 * _BYTES)
