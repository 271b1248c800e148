"""Giving an intent up: when its bytes or its destination cannot be had any more.

The decision is written down before anything is removed. A crash on the way therefore finds an intent that is
being given up, never one that looks as if all of its messages stood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import NoAccessError, NotBeforeError
from worker.log import get_logger
from worker.recovery.reconcile import Removed, remove_sent
from worker.store import given_up, missing_packages, open_intents, reach
from worker.store.sets import claim_set

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from worker.pipeline.deps import Deps
    from worker.store.database import Database
    from worker.store.locks import LockSession
    from worker.store.open_intents import Begun
    from worker.store.sets import Claim
    from worker.store.silence import Silence
    from worker.store.uploads import Intent

    Wait = Callable[[], Awaitable[None]]

log = get_logger(__name__)


async def abandon(deps: Deps, claim: Claim, intent: Intent) -> str:
    """Remove what a given-up intent sent, then end it and fail its set with the same reason."""
    return await _end(deps, claim, intent, await remove_sent(deps, intent))


async def destination_closed(deps: Deps, claim: Claim, intent: Intent, error: NoAccessError) -> str:
    """This account cannot read the destination. That alone proves nothing; another one may.

    The destination counts as gone only when a person has chosen another one and no account reads it.
    """
    await reach.note_no_access(deps.database, deps.account.id, intent.destination_id)
    if intent.reason is not None:
        return await leave_to_others(deps, claim, intent)
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
    return await _end(deps, claim, intent, Removed(0, _recorded(intent), reason))


async def leave_to_others(deps: Deps, claim: Claim, intent: Intent) -> str:
    """It is given up, and this account does not see all that it has sent: whoever does takes that back.

    Where nobody does it ends here. What may have arrived unheard of stays marked as such.
    """
    me = deps.account.id
    others = [number for number in await given_up.could_look(deps.database, intent.upload_id) if number != me]
    if not others:
        why = "no account at work sees all of the destination"
        return await _end(deps, claim, intent, Removed(0, _recorded(intent), why))
    # Whatever was under way arrives meanwhile, or never will: whoever looks after that misses none of it.
    await deps.clock.sleep(deps.settings.telegram.call_timeout_secs)
    await open_intents.hand_over(deps.database, intent, others[0])
    what = f"account {others[0]} takes back what account {me} has sent and cannot see any more"
    raise NotBeforeError(what, seconds=deps.settings.fleet.retry_base_secs)


def _recorded(intent: Intent) -> int:
    return sum(part.state == "sent" for part in intent.parts)


async def end_unseen(
    database: Database, silence: Silence, locks: LockSession, worker_id: UUID, begun: Begun, calls_end: Wait
) -> str:
    """End a given-up upload whose account cannot work and whose destination no account reads.

    The account's own lock and the content's are held, as by whoever would have done it with an account, and
    ``calls_end`` lasts until whatever was under way has arrived or never will. A part that may have arrived
    stays marked as such: nobody publishes its content there before it was looked for.
    """
    at_work = f"left to its worker: account {begun.account_id} is at work"
    seen = await silence.outwait(begun.account_id, worker_id)
    if seen is None or not await locks.try_account(begun.account_id):
        return at_work
    try:
        if not await silence.has_not_moved(seen):
            return at_work
        await calls_end()
        if not await locks.try_content(begun.content_hash):
            return "waits: another worker is publishing the same content"
        try:
            intent = await open_intents.own(database, begun.upload_id, begun.account_id)
            claim = await claim_set(database, begun.account_id, worker_id, intent.set_id)
            if claim is None:
                return "waits: a copy of it is being worked on"
            await open_intents.abandon(database, intent, claim)
        finally:
            await locks.release_content(begun.content_hash)
    finally:
        await locks.release_account(begun.account_id)
    log.warning("intent.abandoned", upload=intent.upload_id, reason=intent.reason, left=_recorded(intent))
    return _ended(intent, Removed(0, _recorded(intent), "no account reads the destination"))


async def require_posting(deps: Deps, intent: Intent) -> None:
    """Wait while this account has no right to write at the intent's destination, or that is held up.

    Asked before the bytes are fetched once more, only to be refused again. The account's list of chats, which
    is read again as long as it may not post, brings the right back.
    """
    if (held := await missing_packages.held(deps.database, intent.destination_id)) is not None:
        wait = deps.settings.fleet.retry_base_secs
        raise NotBeforeError(held.reason, seconds=wait, remedy=held.remedy)
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


async def _end(deps: Deps, claim: Claim, intent: Intent, taken_back: Removed) -> str:
    await open_intents.abandon(deps.database, intent, claim)
    log.warning(
        "intent.abandoned",
        upload=intent.upload_id,
        reason=intent.reason,
        removed=taken_back.removed,
        left=taken_back.left,
    )
    deps.watcher.set_given_up(claim.name, intent.reason or "")
    return _ended(intent, taken_back)


def _ended(intent: Intent, taken_back: Removed) -> str:
    told = f"given up: {intent.reason}"
    if taken_back.left:
        left = f"{taken_back.left} of its messages are left over ({taken_back.why})"
        told += f"; {left}: worker recover tries again"
    return told
