"""Writing down what became of a claim, however long the database takes to hear of it.

What befell the worker (its database, its disk) is not what became of the set: it is waited for, not booked.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from worker.errors import (
    OWN_TROUBLE,
    CommitUnknownError,
    DiskFullError,
    DiskTroubleError,
    FenceLostError,
)
from worker.flow.backoff import Backoff
from worker.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.pipeline.deps import Deps

log = get_logger(__name__)
_ASK_AGAIN = Backoff(first=0.2, cap=5.0)
_LOOK_AT_DISK_SECONDS = 60.0
_FULL = (errno.ENOSPC, errno.EDQUOT)


async def settled(deps: Deps, write: Callable[[], Awaitable[None]]) -> None:
    """Have it written down once, as soon as the database takes it; ends with the lease at the latest."""
    failures, may_be_written = 0, False
    while True:
        try:
            await write()
        except OWN_TROUBLE as trouble:
            may_be_written |= isinstance(trouble, CommitUnknownError)
            log.warning("set.not_settled_yet", reason=str(trouble))
        except FenceLostError:
            # It was written the time before, and only the answer was lost; or somebody else owns the set.
            if not may_be_written:
                raise
            return
        else:
            return
        await deps.clock.sleep(_ASK_AGAIN.delay(failures))
        failures += 1
        # The database is away from the lock as well: once the account may be another's, nothing is written.
        await deps.trust.confirmed()


def trouble_with(error: OSError | MemoryError) -> DiskTroubleError:
    """What the operating system refused, as a reason to wait: it says nothing about the set."""
    if isinstance(error, OSError) and error.errno in _FULL:
        what = f"the disk took no more: {error.strerror}"
        return DiskFullError(what, seconds=_LOOK_AT_DISK_SECONDS, remedy="free some space")
    told = getattr(error, "strerror", None) or repr(error)
    file = getattr(error, "filename", None)
    what = f"this host does not do what it should: {told}" + (f" ({file})" if file else "")
    return DiskTroubleError(what, seconds=_LOOK_AT_DISK_SECONDS, remedy="look at: worker doctor")
