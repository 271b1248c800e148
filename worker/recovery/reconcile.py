"""What an intent has at its destination: found by marker, written down, and removed when it is given up.

A marker alone proves nothing: it can be copied, with all that stands around it. A message counts as a part if
its code was made for it, or if it shows the very document that the intent says it was about to send.

This is the only place from which messages are deleted. Each deletion stands under the content's lock and the
intent's fence, and names a message that an intent recorded and no package refers to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from worker.domain.marker import find_marker
from worker.domain.origin import Standing
from worker.domain.telegram import Message
from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    FenceLostError,
    FleetError,
    NoAccessError,
    NotBeforeError,
    RefusedError,
)
from worker.log import get_logger
from worker.pipeline.deduplicate import only_publisher
from worker.pipeline.posting import remove
from worker.pipeline.sight import require_sight
from worker.recovery.authority import authority_in
from worker.store import removals, uploads
from worker.store.channels import channel_ref

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from worker.domain.marker import Marker
    from worker.domain.origin import Authority
    from worker.domain.telegram import ChannelRef, Document
    from worker.pipeline.deps import Deps
    from worker.store.removals import Removable
    from worker.store.uploads import Intent, UploadPart

log = get_logger(__name__)
# Telegram answers at most 100 ids at once.
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Found:
    """A message that turned out to be a part of an intent."""

    ordinal: int
    message_id: int
    document_id: int


async def look_above_floor(deps: Deps, intent: Intent) -> Intent:
    """Write down the messages of this intent that are at the destination already."""
    async for found in find_above_floor(deps, intent):
        await uploads.mark_sent(
            deps.database,
            intent,
            found.ordinal,
            message_id=found.message_id,
            document_id=found.document_id,
        )
        log.info("intent.adopted", upload=intent.upload_id, part=found.ordinal, message=found.message_id)
    return await uploads.reload(deps.database, intent)


async def find_above_floor(deps: Deps, intent: Intent) -> AsyncIterator[Found]:
    """Messages of this intent that nobody has written down, oldest first: a copy comes after its original."""
    missing = {part.plan.offset: part for part in intent.parts if part.state != "sent"}
    channel = await channel_ref(deps.database, deps.account.id, intent.destination_id)
    authority = await authority_in(deps, channel)
    cursor = intent.floor_id
    while missing and (page := await deps.gateway.page_after(channel, cursor)):
        for item in page:
            cursor = item.message_id if isinstance(item, Message) else item
            if not isinstance(item, Message) or (found := _part_in(item, intent, missing)) is None:
                continue
            part, document, marker = found
            standing = authority.standing(item, marker)
            if not _is_ours(item, document, part, standing, authority):
                log.warning("message.not_ours", message=item.message_id, upload=intent.upload_id)
                if intent.reason is None and _may_be_ours(item, part, standing):
                    raise _nobody_can_tell(deps, intent, item, part)
                continue
            del missing[part.plan.offset]
            yield Found(part.plan.ordinal, cursor, document.document_id)


def _part_in(
    message: Message, intent: Intent, missing: dict[int, UploadPart]
) -> tuple[UploadPart, Document, Marker] | None:
    """Which missing part this message claims to carry. A caption alone is none: the bytes must be there."""
    marker, document = find_marker(message.text), message.document
    if marker is None or document is None or marker.content_hash != intent.content_hash:
        return None
    part = missing.get(marker.offset)
    if part is None or not marker.length == document.size == part.plan.length:
        return None
    return part, document, marker


def _is_ours(
    message: Message, document: Document, part: UploadPart, standing: Standing, authority: Authority
) -> bool:
    if standing is Standing.PROVEN:
        return True
    if part.document_id is not None:
        # The keys may have changed since; the document that was about to be sent is nobody else's.
        return document.document_id == part.document_id and authority.is_sent_by_us(message)
    # An intent from before there were codes, or at a server that makes no document of what nobody sees.
    return standing is Standing.TO_BE_HASHED and authority.names_us(message)


def _may_be_ours(message: Message, part: UploadPart, standing: Standing) -> bool:
    """Whether it may be what another account of ours has sent where messages name nobody.

    Nothing tells of which document: the server made none before, or there were no codes yet.
    """
    is_nobodys = message.sender_id == 0 and part.document_id is None
    return is_nobodys and part.state == "sending" and standing in (Standing.TO_BE_HASHED, Standing.OLD)


def _nobody_can_tell(deps: Deps, intent: Intent, message: Message, part: UploadPart) -> NotBeforeError:
    """Neither adopted, since it may be somebody else's, nor sent once more beside what may be ours."""
    return NotBeforeError(
        f"message {message.message_id} at the destination may be part {part.plan.ordinal + 1} of it,"
        " and nothing tells who has sent it",
        seconds=deps.settings.fleet.retry_base_secs,
        remedy=f"delete that message, or end the upload: worker recover --give-up {intent.set_id}",
    )


@dataclass(frozen=True, slots=True)
class Removed:
    """How many messages were taken back, and how many are left over, and why."""

    removed: int
    left: int
    why: str = ""


async def remove_sent(deps: Deps, intent: Intent) -> Removed:
    """Delete what an intent that was given up has sent. Its content's lock is held.

    What may not be deleted stays recorded as left over: another account, or a right given later, may do it.
    """
    channel = await channel_ref(deps.database, deps.account.id, intent.destination_id)
    items = await removals.left_of(deps.database, intent.upload_id)
    there = await _still_there(deps, channel, items)
    for number, item in enumerate(items):
        try:
            await _remove(deps, channel, item, intent.fence, is_there=item.message_id in there)
        except (NoAccessError, RefusedError) as error:
            log.warning(
                "message.left_over", message=item.message_id, upload=item.upload_id, reason=error.what
            )
            return Removed(number, len(items) - number, error.what)
    return Removed(len(items), 0)


async def settle_unseen(deps: Deps) -> None:
    """Look for what uploads that were given up unseen may have left, and take it back."""
    for item in await removals.unsettled_for(deps.database, deps.account.id):
        try:
            async with only_publisher(deps, item.content_hash):
                await _settle(deps, item.upload_id)
        except FenceLostError as error:
            log.info("upload.not_settled", upload=item.upload_id, reason=str(error))
        except ENDS_ACCOUNTS_WORK:
            raise
        except FleetError as error:
            # A wait that Telegram asks for here holds up that content, and nothing else.
            log.info("upload.not_settled", upload=item.upload_id, reason=str(error))


async def _settle(deps: Deps, upload_id: int) -> None:
    fence = await removals.own_ended(deps.database, upload_id)
    intent = replace(await removals.ended_intent(deps.database, upload_id), fence=fence)
    async for found in find_above_floor(deps, intent):
        await removals.settle_found(
            deps.database,
            upload_id,
            fence,
            found.ordinal,
            message_id=found.message_id,
            document_id=found.document_id,
        )
    # What this account does not see would be taken for what was never sent.
    await require_sight(
        deps, intent.destination_id, [intent.floor_id + 1], f"what upload {upload_id} may have sent"
    )
    await removals.settle_absent(deps.database, upload_id, fence)
    await remove_sent(deps, intent)


async def remove_left_over(deps: Deps, item: Removable) -> str:
    """Delete one message of an upload that has ended, if it still is what was recorded; what came of it."""
    channel = await channel_ref(deps.database, deps.account.id, item.destination_id)
    fence = await removals.own_ended(deps.database, item.upload_id)
    found = (await deps.gateway.messages(channel, [item.message_id])).get(item.message_id)
    if found is None:
        # Only who sees where it was may say so: nobody would look for it again.
        await require_sight(
            deps, item.destination_id, [item.message_id], f"what upload {item.upload_id} sent"
        )
        await removals.mark_deleted(deps.database, item, fence)
        return "gone already"
    marker = find_marker(found.text)
    if marker is None or marker.content_hash != item.content_hash:
        log.warning("message.not_ours", message=item.message_id, upload=item.upload_id)
        return "not what was sent: yours to delete"
    await _remove(deps, channel, item, fence, is_there=True)
    return "removed"


async def _still_there(deps: Deps, channel: ChannelRef, items: Sequence[Removable]) -> set[int]:
    ids = [item.message_id for item in items]
    found: set[int] = set()
    for start in range(0, len(ids), _BATCH):
        found |= set(await deps.gateway.messages(channel, ids[start : start + _BATCH]))
    return found


async def _remove(deps: Deps, channel: ChannelRef, item: Removable, fence: int, *, is_there: bool) -> None:
    # Asked for in any case: what an account does not see is not therefore gone.
    is_removable = partial(removals.require_removable, deps.database, item, fence)
    await remove(deps.outbox, deps.transport, deps.account.id, channel, item.message_id, is_removable)
    await removals.mark_deleted(deps.database, item, fence)
    if is_there:
        log.warning("message.removed", message=item.message_id, upload=item.upload_id)
    else:
        log.info("message.gone_already", message=item.message_id, upload=item.upload_id)
