"""Folders for PostgreSQL servers that live as long as a test, or as long as all of them."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MEMORY = Path("/dev/shm")
# A write-ahead log of 1 GiB, and what the tests put into their databases.
_ROOM = 2 * 2**30


def keeps_in_memory() -> bool:
    """Whether such folders lie in memory: making and dropping databases is mostly waiting for a disk."""
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return False
    # The server's programs may have to be copied next to its data, and run from there.
    may_run = not os.statvfs(_MEMORY).f_flag & getattr(os, "ST_NOEXEC", 0)
    return may_run and shutil.disk_usage(_MEMORY).free > _ROOM


def make_server_folder(prefix: str) -> Path:
    """A folder outside of pytest's own, which are closed to the user that root's PostgreSQL runs as."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if keeps_in_memory() else None))
    folder.chmod(0o711)
    return folder


@contextlib.contextmanager
def server_folder(prefix: str) -> Iterator[Path]:
    """Such a folder for the length of this block."""
    folder = make_server_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
