"""Messages that ended uploads left at the destination: removed where nobody refers to them any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import ENDS_ACCOUNTS_WORK, FenceLostError, FleetError
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Kind
from worker.recovery.reconcile import remove_left_over
from worker.store import removals

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.recovery.findings import Findings
    from worker.recovery.sight import Sight
    from worker.store.removals import Removable


async def remove_left_overs(
    deps: Deps, findings: Findings, seen: set[int], sight: Sight, *, dry_run: bool
) -> None:
    """Go through what abandoned and superseded uploads sent, in channels that this account can read.

    ``seen`` are the channels that another account of this process takes care of.
    """
    readable = {destination.channel_id for destination in await sight.destinations()}
    mine = readable - seen
    seen |= mine
    last: Removable | None = None
    while items := await removals.left_of_ended(deps.database, after=last):
        last = items[-1]
        for item in items:
            if item.destination_id in mine:
                what = f"message {item.message_id} of upload {item.upload_id}"
                outcome = "to be removed" if dry_run else await _remove(deps, item)
                findings.note(Kind.MESSAGE, what, outcome)


async def _remove(deps: Deps, item: Removable) -> str:
    try:
        async with only_publisher(deps, item.content_hash):
            return "removed" if await remove_left_over(deps, item) else "gone already"
    except FenceLostError as error:
        return f"left: {error.what}"
    except ENDS_ACCOUNTS_WORK:
        raise
    except FleetError as error:
        return f"left: {error.what}"
