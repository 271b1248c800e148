"""The package stub: deliverable, counted for deduplication, metadata pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import OutcomeUnknownError
from worker.log import get_logger
from worker.store.packages import package_of, record_stub

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim
    from worker.store.uploads import Intent

log = get_logger(__name__)


async def record(deps: Deps, claim: Claim, intent: Intent) -> int:
    """Write the stub with every message id, end the intent and the claim, all at once."""
    try:
        package_id = await record_stub(deps.database, claim, intent, deps.run_id)
    except OutcomeUnknownError:
        # The commit's answer was lost. Only what is read back says whether the package exists.
        committed = await package_of(deps.database, intent)
        if committed is None:
            raise
        package_id = committed
    log.info("set.published", set=claim.set_id, name=claim.name, package=package_id, parts=len(intent.parts))
    return package_id
