"""Giving an intent up: when its bytes or its destination cannot be had any more.

The decision is written down before anything is removed. A crash on the way therefore finds an intent that is
being given up, never one that looks as if all of its messages stood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import NoAccessError, NotBeforeError
from worker.log import get_logger
from worker.recovery.reconcile import remove_sent
from worker.store import missing_packages, open_intents, reach

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim
    from worker.store.uploads import Intent

log = get_logger(__name__)


async def abandon(deps: Deps, claim: Claim, intent: Intent) -> str:
    """Remove what a given-up intent sent, then end it and fail its set with the same reason."""
    removed = await remove_sent(deps, intent)
    return await _end(deps, claim, intent, removed)


async def destination_closed(deps: Deps, claim: Claim, intent: Intent, error: NoAccessError) -> str:
    """This account cannot read the destination. That alone proves nothing; another one may.

    The destination counts as gone only when a person has chosen another one and no account reads it.
    """
    await reach.note_no_access(deps.database, deps.account.id, intent.destination_id)
    if not await reach.is_gone_destination(deps.database, intent.destination_id):
        title = await reach.title_of(deps.database, intent.destination_id)
        # A person's decision to wait for: it is no fault of the set, and looked at again every so often.
        raise NotBeforeError(
            f"account {deps.account.id} may not read {title} any more",
            seconds=deps.settings.fleet.retry_base_secs,
            remedy=f"let it in again, or run: worker recover --take-over {deps.account.id}",
        ) from error
    reason = "its destination is gone: no account can read it"
    intent = await open_intents.give_up(deps.database, intent, reason)
    # What it sent lies where nobody can delete it; the record of it stays, should the channel open again.
    return await _end(deps, claim, intent, 0)


async def require_posting(deps: Deps, intent: Intent) -> None:
    """Wait while this account has no right to write at the intent's destination, or that is held up.

    Asked before the bytes are fetched once more, only to be refused again. The account's list of chats, which
    is read again as long as it may not post, brings the right back.
    """
    if (held := await missing_packages.held(deps.database, intent.destination_id)) is not None:
        wait = deps.settings.fleet.retry_base_secs
        raise NotBeforeError(held.reason, seconds=wait, remedy=missing_packages.ACCEPT)
    if await reach.may_post(deps.database, deps.account.id, intent.destination_id):
        return
    title = await reach.title_of(deps.database, intent.destination_id)
    raise NotBeforeError(
        f"account {deps.account.id} may no longer post in {title}, where it has begun to publish this",
        seconds=deps.settings.fleet.retry_base_secs,
        remedy=f"make it an administrator there, or run: worker recover --take-over {deps.account.id}",
    )


async def find_copy(deps: Deps, intent: Intent) -> int | None:
    """Another set of the same bytes that this account can read; raises while only others can."""
    copies = await reach.copies_of(deps.database, intent)
    own = [copy.set_id for copy in copies if copy.account_id == deps.account.id]
    if own:
        return own[0]
    if copies:
        raise NotBeforeError(
            f"its bytes are left only where account {deps.account.id} does not read",
            seconds=deps.settings.fleet.retry_base_secs,
            remedy=f"run: worker recover --take-over {deps.account.id}",
        )
    return None


async def _end(deps: Deps, claim: Claim, intent: Intent, removed: int) -> str:
    await open_intents.abandon(deps.database, intent, claim)
    log.warning("intent.abandoned", upload=intent.upload_id, reason=intent.reason, removed=removed)
    deps.watcher.set_given_up(claim.name, intent.reason or "")
    return f"given up: {intent.reason}"
