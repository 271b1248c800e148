"""Messages that ended uploads left at the destination: removed where nobody refers to them any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import AccountUnusableError, BusyError, FleetError, LeaseLostError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Kind
from worker.recovery.reconcile import remove_left_over
from worker.store import removals, withdrawals

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.recovery.findings import Findings
    from worker.store.removals import Removable

log = get_logger(__name__)


async def remove_left_overs(deps: Deps, findings: Findings, *, dry_run: bool) -> None:
    """Go through what abandoned and superseded uploads sent, in channels that this account can read."""
    readable = {item.channel_id for item in await withdrawals.destinations_of(deps.database, deps.account.id)}
    last: Removable | None = None
    while items := await removals.left_of_ended(deps.database, after=last):
        last = items[-1]
        for item in items:
            if item.destination_id not in readable:
                continue
            what = f"message {item.message_id} of upload {item.upload_id}"
            if dry_run:
                findings.note(Kind.MESSAGE, what, "to be removed")
                continue
            try:
                async with only_publisher(deps, item.content_hash):
                    was_there = await remove_left_over(deps, item)
                findings.note(Kind.MESSAGE, what, "removed" if was_there else "gone already")
            except BusyError:
                continue
            except (LeaseLostError, AccountUnusableError):
                raise
            except FleetError as error:
                findings.note(Kind.MESSAGE, what, f"left: {error.what}")
