"""What an intent has at its destination: found by marker, written down, and removed when it is given up.

This is the only place from which messages are deleted. Each deletion stands under the content's lock and the
intent's fence, and names a message that an intent recorded and no package refers to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.domain.marker import find_marker
from worker.domain.telegram import Message
from worker.log import get_logger
from worker.pipeline.posting import remove
from worker.pipeline.sight import require_sight
from worker.store import removals, uploads
from worker.store.channels import channel_ref

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.domain.telegram import ChannelRef, Document
    from worker.pipeline.deps import Deps
    from worker.store.removals import Removable
    from worker.store.uploads import Intent, UploadPart

log = get_logger(__name__)


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
    """Messages of this intent that nobody has written down, oldest first."""
    missing = {part.plan.offset: part for part in intent.parts if part.state != "sent"}
    channel = await channel_ref(deps.database, deps.account.id, intent.destination_id)
    cursor = intent.floor_id
    while missing and (page := await deps.gateway.page_after(channel, cursor)):
        for item in page:
            cursor = item.message_id if isinstance(item, Message) else item
            if not isinstance(item, Message) or (found := _part_in(item, intent, missing)) is None:
                continue
            part, document = found
            del missing[part.plan.offset]
            yield Found(part.plan.ordinal, cursor, document.document_id)


def _part_in(
    message: Message, intent: Intent, missing: dict[int, UploadPart]
) -> tuple[UploadPart, Document] | None:
    """Which missing part this message carries. A caption alone proves nothing: the bytes must be there."""
    marker, document = find_marker(message.text), message.document
    if marker is None or document is None or marker.content_hash != intent.content_hash:
        return None
    part = missing.get(marker.offset)
    if part is None or not marker.length == document.size == part.plan.length:
        return None
    return part, document


async def remove_sent(deps: Deps, intent: Intent) -> int:
    """Delete what an intent that was given up has sent; how many messages. Its content's lock is held."""
    channel = await channel_ref(deps.database, deps.account.id, intent.destination_id)
    left = await removals.left_of(deps.database, intent.upload_id)
    for item in left:
        await _remove(deps, channel, item, intent.fence)
    return len(left)


async def remove_left_over(deps: Deps, item: Removable) -> str:
    """Delete one message of an upload that has ended, if it still is what was recorded; what came of it."""
    channel = await channel_ref(deps.database, deps.account.id, item.destination_id)
    fence = await removals.own_ended(deps.database, item)
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
    await _remove(deps, channel, item, fence)
    return "removed"


async def _remove(deps: Deps, channel: ChannelRef, item: Removable, fence: int) -> None:
    await removals.require_removable(deps.database, item, fence)
    await remove(deps.outbox, deps.transport, deps.account.id, channel, item.message_id)
    await removals.mark_deleted(deps.database, item, fence)
    log.warning("message.removed", message=item.message_id, upload=item.upload_id)
