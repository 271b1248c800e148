"""Finishing what another account began and cannot finish.

Two accounts share no ``random_id``: a message of the first that arrives after the second has looked would
stand there twice. So the taking account waits until the other's owner is certainly gone, holds its lock as
well, lets one call deadline pass in which whatever was under way has either arrived or never will, and only
then looks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from worker.errors import ENDS_ACCOUNTS_WORK, BusyError, FenceLostError, FleetError, NotBeforeError
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.recovery.findings import Kind
from worker.recovery.reconcile import look_above_floor
from worker.recovery.replan import cut_anew
from worker.recovery.sight import require_sight_of
from worker.store import open_intents, reach

if TYPE_CHECKING:
    from collections.abc import Collection

    from worker.pipeline.deps import Deps
    from worker.recovery.findings import Findings
    from worker.store.open_intents import Begun
    from worker.store.uploads import Intent

log = get_logger(__name__)


async def take_over_stranded(deps: Deps, findings: Findings, asked: Collection[int] = ()) -> None:
    """Take over what this account could end, of accounts that cannot work or that a person named."""
    stranded = await open_intents.stranded_for(deps.database, deps.account.id, asked)
    for account_id in sorted({begun.account_id for begun in stranded}):
        begun = [item for item in stranded if item.account_id == account_id]
        try:
            # One account of this process is enough, and the lock alone would be granted to it twice.
            with deps.lanes.try_hold(("account", account_id)):
                await _take_over_from(deps, findings, account_id, begun)
        except BusyError as error:
            log.info("take_over.waits", account=account_id, reason=str(error))


async def _take_over_from(deps: Deps, findings: Findings, account_id: int, begun: list[Begun]) -> None:
    busy = BusyError(f"a worker runs account {account_id}", seconds=deps.settings.fleet.busy_retry_secs)
    seen = await deps.silence.outwait(
        account_id,
        deps.worker_id,
        lambda seconds: log.info("take_over.waits_for_its_owner", account=account_id, seconds=seconds),
    )
    if seen is None:
        raise busy
    if not await deps.locks.try_account(account_id):
        raise busy
    try:
        if not await deps.silence.has_not_moved(seen):
            raise busy
        wait = deps.settings.telegram.call_timeout_secs
        log.info("take_over.lets_calls_end", account=account_id, seconds=math.ceil(wait))
        await deps.clock.sleep(wait)
        for item in begun:
            try:
                await _take(deps, item)
                findings.note(Kind.UPLOAD, item.set_name, f"taken over: from account {account_id}")
            except FenceLostError as error:
                log.info("take_over.too_late", upload=item.upload_id, reason=str(error))
            except ENDS_ACCOUNTS_WORK:
                raise
            except FleetError as error:
                findings.note(Kind.UPLOAD, item.set_name, f"waits: {error}")
    finally:
        await deps.locks.release_account(account_id)


async def _take(deps: Deps, begun: Begun) -> None:
    async with only_publisher(deps, begun.content_hash):
        intent = await open_intents.own(deps.database, begun.upload_id, begun.account_id)
        intent = await look_above_floor(deps, intent)
        await require_sight_of(deps, intent)
        missing = [part.plan for part in intent.parts if part.state != "sent"]
        given_up = intent.reason is not None
        source = intent.set_id if given_up or not missing else await _source_for(deps, intent)
        # What is given up is only to be taken back: nothing of it is sent any more.
        parts = [] if given_up else cut_anew(missing, deps.upload_limit)
        await open_intents.rewrite(deps.database, intent, deps.account.id, source, parts)
    log.warning("intent.taken_over", upload=begun.upload_id, of=begun.account_id, missing=len(missing))


async def _source_for(deps: Deps, intent: Intent) -> int:
    """The set to have the missing bytes from: its own, or a copy that this account reads."""
    if await reach.reads_source(deps.database, deps.account.id, intent.set_id):
        return intent.set_id
    for copy in await reach.copies_of(deps.database, intent):
        if copy.account_id == deps.account.id:
            return copy.set_id
    what = f"account {deps.account.id} reads no copy of it"
    raise NotBeforeError(what, seconds=deps.settings.fleet.retry_base_secs)
