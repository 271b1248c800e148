"""The folder of the server's socket, by a name that is short enough for the kernel.

The address of a socket takes 107 bytes, on macOS 103. A folder whose path leaves no room in that is named by
an open descriptor instead: a name for this process alone, and for those that it hands the descriptor.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from worker.errors import UserError

if TYPE_CHECKING:
    from types import TracebackType

_LONGEST = 103 - len("/.s.PGSQL.5432")
_DESCRIPTORS = Path("/proc/self/fd")


class SocketFolder:
    """A name for ``path``, good until it is closed."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.descriptors: tuple[int, ...] = ()
        # Drivers take a comma for the end of one address and the beginning of another.
        if len(os.fsencode(path)) <= _LONGEST and "," not in self.name:
            return
        if not _DESCRIPTORS.is_dir():
            raise UserError(
                f"{path} is too long a path for the socket of the embedded database",
                remedy="set WORKER_DATA_DIR to a shorter one, or WORKER_DATABASE_URL",
            )
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.descriptors = (descriptor,)
        self.name = str(_DESCRIPTORS / str(descriptor))

    def close(self) -> None:
        descriptors, self.descriptors = self.descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
