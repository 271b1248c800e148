"""A package that was withdrawn and stands at the destination after all: published again as it is.

Messages that were deleted never come back. But a package may have been withdrawn by mistake, or by a database
that was restored since, and its content must not be sent beside the copy that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.marker import find_marker
from worker.log import get_logger
from worker.store import seen_again as store
from worker.store.channels import channel_ref

if TYPE_CHECKING:
    from worker.domain.telegram import Message
    from worker.pipeline.deps import Deps
    from worker.store.seen_again import WithdrawnPart

log = get_logger(__name__)
# The answer to one call of messages by their ids.
_MESSAGES = 100


async def seen_again(deps: Deps, content_hash: bytes) -> int | None:
    """The package of this content, if it was withdrawn and every message of it stands. Its lock is held."""
    parts = await store.withdrawn_parts(deps.database, deps.account.id, content_hash)
    if not parts or not await _all_stand(deps, parts, content_hash):
        return None
    package_id = parts[0].package_id
    if not await store.publish_again(deps.database, package_id, content_hash):
        return None
    log.warning("package.seen_again", package=package_id, parts=len(parts))
    return package_id


async def _all_stand(deps: Deps, parts: list[WithdrawnPart], content_hash: bytes) -> bool:
    channel = await channel_ref(deps.database, deps.account.id, parts[0].channel_id)
    for start in range(0, len(parts), _MESSAGES):
        batch = parts[start : start + _MESSAGES]
        found = await deps.gateway.messages(channel, [part.message_id for part in batch])
        if not all(_stands(part, found.get(part.message_id), content_hash) for part in batch):
            return False
    return True


def _stands(part: WithdrawnPart, message: Message | None, content_hash: bytes) -> bool:
    if message is None or message.document is None:
        return False
    marker = find_marker(message.text)
    shown = (message.document.document_id, message.document.size)
    return (
        shown == (part.document_id, part.length)
        and marker is not None
        and marker.content_hash == content_hash
    )
