"""Taking the next set that is ready, and the disk space that it needs."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from worker.domain.split_plan import MIB
from worker.errors import NotBeforeError
from worker.store import claiming, disk
from worker.store.destinations import destination_of
from worker.store.sets import claim_set
from worker.store.unheard_claims import UnheardClaimError, give_back_unheard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.pipeline.deps import Deps
    from worker.store.claiming import Turn
    from worker.store.sets import Claim


async def claim_next(deps: Deps, turn: Turn) -> Claim | None:
    """The next set for this account, claimed and with its disk space reserved; None if there is none now.

    An account that may not publish takes nothing: it would only find out after the download.
    """
    most = deps.settings.fleet.destination_messages
    await destination_of(deps.database, deps.account.id, most_messages=most)
    transfer = deps.settings.transfer
    taker = claiming.Taker(
        deps.account.id,
        deps.worker_id,
        is_premium=deps.standing.is_premium,
        standard_limit=transfer.standard_limit_mib * MIB,
        premium_limit=transfer.premium_limit_mib * MIB,
        kept_free=transfer.min_free_mib * MIB,
    )
    async with _heard_of(deps):
        return await claiming.claim_next(deps.database, taker, turn, deps.workspace)


async def claim_begun(deps: Deps, set_id: int) -> Claim | None:
    """This one set, to finish what was begun with it; None if somebody else works on it."""
    async with _heard_of(deps):
        return await claim_set(deps.database, deps.account.id, deps.worker_id, set_id)


@contextlib.asynccontextmanager
async def _heard_of(deps: Deps) -> AsyncIterator[None]:
    """Give a claim back of which it is not known whether it was made, before the next one is."""
    try:
        yield
    except UnheardClaimError as unheard:
        give_back = partial(give_back_unheard, deps.database, unheard.claim)
        await deps.tries.give_back(give_back, at_once=deps.trust.is_trusted)
        raise


async def reserve_disk(deps: Deps, claim: Claim) -> None:
    """Reserve space for a set that was claimed to finish what was begun with it."""
    kept_free = deps.settings.transfer.min_free_mib * MIB
    lack = await claiming.reserve_for(deps.database, claim, deps.workspace, kept_free)
    if lack is not None:
        raise NotBeforeError(lack.reason, seconds=lack.seconds)


async def release_disk(deps: Deps, claim: Claim) -> None:
    """Give the set's space back, once its files are gone."""
    await disk.release(deps.database, claim)
