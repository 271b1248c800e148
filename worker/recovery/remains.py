"""What stands of a package that was withdrawn: taken back, before anybody publishes its content again.

A split package of which a person deleted one message restores nothing. Its other messages are removed like
whatever else an upload left: by reconciliation, under the content's lock, and only those that are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import ENDS_ACCOUNTS_WORK, BusyError, FenceLostError, FleetError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Kind
from worker.recovery.reconcile import remove_left_over
from worker.store import remains as store

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.recovery.findings import Findings
    from worker.recovery.sight import Sight
    from worker.store.remains import Remains

log = get_logger(__name__)


async def take_back_remains(deps: Deps, findings: Findings, sight: Sight, *, dry_run: bool = False) -> None:
    """Finish what a process that died, or an account that may not delete, has left of withdrawn packages."""
    for destination in await sight.destinations():
        for remains in await store.packages_with_remains(deps.database, destination.channel_id):
            if dry_run:
                findings.note(Kind.PACKAGE, remains.name, "to be taken back: what stands of it")
                continue
            try:
                async with only_publisher(deps, remains.content_hash):
                    await take_back(deps, findings, remains)
            except BusyError as error:
                log.info("remains.looked_at_later", package=remains.package_id, reason=error.what)


async def take_back(deps: Deps, findings: Findings, remains: Remains) -> None:
    """Remove what uploads sent of this package; what cannot be removed now is tried again, and waited for."""
    is_settled = True
    for item in await store.left_of_package(deps.database, remains.package_id):
        what = f"message {item.message_id} of {remains.name}"
        try:
            findings.note(Kind.MESSAGE, what, await remove_left_over(deps, item))
        except FenceLostError as error:
            is_settled = False
            log.info("remains.not_ours", package=remains.package_id, reason=str(error))
        except ENDS_ACCOUNTS_WORK:
            raise
        except FleetError as error:
            is_settled = False
            log.warning("remains.not_removed", package=remains.package_id, reason=str(error))
            findings.note(Kind.MESSAGE, what, f"left: {error}")
    if is_settled:
        await store.settle_remains(deps.database, remains)
