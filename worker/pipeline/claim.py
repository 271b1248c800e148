"""Taking the next set that is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.store import sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim


async def claim_next(deps: Deps, resting: Sequence[int] = ()) -> Claim | None:
    """The next set for this account outside ``resting`` channels, claimed; None if there is none now."""
    return await sets.claim_next(deps.database, deps.account.id, deps.worker_id, resting)
