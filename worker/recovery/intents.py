"""Open intents: find what was sent, send what was not, and only then go on.

A message that carries an intent's marker above its floor was sent by that intent, whatever the process that
sent it lived to write down. What is missing is sent again with the same ``random_id`` by the same account, so
that a message which was applied after all is not made twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.marker import find_marker
from worker.domain.telegram import Message
from worker.errors import BusyError, FenceLostError, FleetError, LeaseLostError, SetFailedError
from worker.log import get_logger
from worker.pipeline.claim import reserve_disk
from worker.pipeline.deduplicate import only_publisher
from worker.pipeline.fetch import Fetched, fetch
from worker.pipeline.publish import send_parts
from worker.pipeline.record import record
from worker.pipeline.run import index_fetched, tidy
from worker.store import uploads
from worker.store.channels import channel_ref
from worker.store.sets import claim_set, hand_back

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim
    from worker.store.uploads import Intent

log = get_logger(__name__)


async def finish_open_intents(deps: Deps, *, due_only: bool = False) -> int:
    """End every upload this account has begun and left, oldest first; how many were ended."""
    ended = 0
    for upload_id in await uploads.open_intents_of(deps.database, deps.account.id, due_only=due_only):
        try:
            await _finish(deps, upload_id)
            ended += 1
        except FenceLostError as error:
            log.info("intent.not_ours", upload=upload_id, reason=str(error))
        except LeaseLostError:
            raise
        except FleetError as error:
            log.warning("intent.waits", upload=upload_id, reason=str(error))
    return ended


async def _finish(deps: Deps, upload_id: int) -> None:
    intent = await uploads.take_over(deps.database, upload_id)
    async with only_publisher(deps, intent.content_hash):
        claim = await claim_set(deps.database, deps.account.id, deps.worker_id, intent.set_id)
        if claim is None:
            wait = deps.settings.fleet.busy_retry_secs
            raise BusyError(f"set {intent.set_id} is being worked on", seconds=wait)
        try:
            intent = await _adopt(deps, intent)
            await _complete(deps, claim, intent)
        except FleetError as error:
            if not isinstance(error, LeaseLostError):
                wait = deps.settings.fleet.busy_retry_secs
                await hand_back(deps.database, claim, reason=str(error), wait_seconds=wait)
            raise
        finally:
            await tidy(deps, claim)


async def _adopt(deps: Deps, intent: Intent) -> Intent:
    """Write down the messages of this intent that are at the destination already."""
    missing = {part.plan.offset: part for part in intent.parts if part.state != "sent"}
    channel = await channel_ref(deps.database, intent.account_id, intent.destination_id)
    cursor = intent.floor_id
    while missing and (page := await deps.gateway.page_after(channel, cursor)):
        for item in page:
            cursor = item.message_id if isinstance(item, Message) else item
            marker = find_marker(item.text) if isinstance(item, Message) else None
            part = missing.get(marker.offset) if marker is not None else None
            if marker is None or part is None or marker.content_hash != intent.content_hash:
                continue
            # A caption alone proves nothing: the bytes have to be there too.
            document = item.document if isinstance(item, Message) else None
            if document is None or document.size != part.plan.length:
                continue
            del missing[marker.offset]
            await uploads.mark_sent(
                deps.database, intent, part.plan.ordinal, message_id=cursor, document_id=document.document_id
            )
            log.info("intent.adopted", upload=intent.upload_id, part=part.plan.ordinal, message=cursor)
    return await uploads.reload(deps.database, intent)


async def _complete(deps: Deps, claim: Claim, intent: Intent) -> None:
    if all(part.state == "sent" for part in intent.parts):
        await record(deps, claim, intent)
        return
    try:
        fetched = await _fetch_same(deps, claim, intent)
    except SetFailedError as error:
        await _abandon_if_unsent(deps, intent, str(error))
        raise
    intent = await send_parts(deps, claim, intent, [part.path for part in fetched.parts])
    package_id = await record(deps, claim, intent)
    await index_fetched(deps, package_id, fetched)


async def _fetch_same(deps: Deps, claim: Claim, intent: Intent) -> Fetched:
    await reserve_disk(deps, claim)
    fetched = await fetch(deps, claim)
    if fetched.content_hash != intent.content_hash:
        raise SetFailedError("the source's bytes have changed since the upload began")
    return fetched


async def _abandon_if_unsent(deps: Deps, intent: Intent, reason: str) -> None:
    """Give the intent up if no message of it can exist; otherwise it stays open and a person decides."""
    if all(part.state == "planned" for part in intent.parts):
        await uploads.abandon(deps.database, intent, reason)
        log.warning("intent.abandoned", upload=intent.upload_id, reason=reason)
