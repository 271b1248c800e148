"""Whether these bytes are already published, asked while nobody else can publish them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import BusyError
from worker.store.packages import package_with
from worker.store.removals import where_unsettled
from worker.store.uploads import live_intent_for
from worker.store.withdrawals import is_withdrawn, where_remains_stand

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.pipeline.deps import Deps

_LET_IN = (
    "let new members see its history, or log in an account that does; or, to publish it beside {beside},"
    " run: worker recover --give-up {set}"
)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The content is published as this package."""

    package_id: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """The content is not published and nobody is about to."""

    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Declined:
    """The content was published, a person deleted it, and the settings say to leave it at that."""


@contextlib.asynccontextmanager
async def only_publisher(deps: Deps, content_hash: bytes) -> AsyncIterator[None]:
    """Be the only one in the fleet who may publish this content. Busy means: look again later."""
    wait = deps.settings.fleet.busy_retry_secs
    # The lane first: a session that asks twice for its own advisory lock is granted it twice.
    lane = deps.lanes.try_hold(
        content_hash, retry_in=wait, busy="another account is publishing the same content"
    )
    with lane:
        if not await deps.locks.try_content(content_hash):
            raise BusyError("another worker is publishing the same content", seconds=wait)
        try:
            yield
        finally:
            await deps.locks.release_content(content_hash)


async def deduplicate(deps: Deps, set_id: int, content_hash: bytes) -> Duplicate | Declined | Cleared:
    """Look again, now that nobody else can publish it. What a person may end is named by ``set_id``."""
    async with deps.database.reading() as connection:
        package_id = await package_with(connection, content_hash)
        if package_id is not None:
            return Duplicate(package_id)
        if not deps.settings.fleet.republish_deleted and await is_withdrawn(connection, content_hash):
            return Declined()
        intent = await live_intent_for(connection, content_hash)
        remains = await where_remains_stand(connection, content_hash)
        unseen = await where_unsettled(connection, content_hash)
    if intent is not None:
        fleet = deps.settings.fleet
        what = f"waiting for account {intent.account_id}, which has begun to publish the same content"
        # A person may end what nobody can finish.
        remedy = f"or run: worker recover --give-up {intent.set_id}" if intent.is_stuck else ""
        # As long again as it has lasted: waits double by themselves, and its end wakes whoever waits.
        wait = min(fleet.retry_cap_secs, max(fleet.busy_retry_secs, intent.age_seconds))
        raise BusyError(what, seconds=wait, remedy=remedy)
    if unseen is not None:
        what = f"an upload of it was given up, and it is not known yet what that left in {unseen.title}"
        remedy = "an account that sees all of the destination looks for it"
        if not unseen.is_seen:
            what += ", of which no account at work sees enough"
            remedy = _LET_IN.format(beside="what may be there", set=set_id)
        raise BusyError(what, seconds=deps.settings.fleet.busy_retry_secs, remedy=remedy)
    if remains is not None:
        what = f"what is left of it in {remains.title} has to be taken back before it is published again"
        remedy = "the next round tries; or delete those messages by hand"
        if not remains.is_seen:
            what += ", and no account at work sees all of that channel"
            remedy = _LET_IN.format(beside="what is left", set=set_id)
        raise BusyError(what, seconds=deps.settings.fleet.busy_retry_secs, remedy=remedy)
    return Cleared(content_hash)
