"""Ending with the last one who needs the server, however that one ends."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def stopped_when_unused(users: Path | None, stop: asyncio.Event) -> Iterator[None]:
    """Set ``stop`` once nobody holds a shared lock on ``users``; None is a server that needs nobody.

    The kernel lets go of a lock when its process dies. The exclusive lock is kept to the end of the block:
    who comes meanwhile waits for it, and does not mistake a server that is ending for one to use.
    """
    if users is None:
        yield
        return
    loop = asyncio.get_running_loop()
    with users.open("ab") as lock:

        def wait() -> None:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # The loop may have ended by itself meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=wait, name="wait for the last user", daemon=True).start()
        yield
