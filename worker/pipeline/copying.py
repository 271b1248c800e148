"""Sending a part as the document that its bytes were fetched from: the message is ours, no byte is moved.

It stands in for the upload alone. The intent, the ``random_id``, the marker and the place in the order are
those of the part, so that whatever becomes of a copy is found, or sent once more, like an upload. Nothing
fails for a copy that cannot be made: the bytes are on the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.copying import Hashed, document_to_copy, whole_file
from worker.errors import NoAccessError, NotBeforeError, ReferenceExpiredError, RefusedError
from worker.log import get_logger
from worker.store.channels import channel_ref
from worker.telegram.reading import posted_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker.domain.telegram import Document, Message
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim, SourcePart
    from worker.store.uploads import UploadPart

log = get_logger(__name__)


async def copy_part(
    deps: Deps, claim: Claim, part: UploadPart, send: Callable[[Document], Awaitable[Message]]
) -> Message | None:
    """Send the part as the file it is at its source; None if its bytes have to be uploaded."""
    index = whole_file([file.size for file in claim.parts], part.plan.offset, part.plan.length)
    # A part whose fate was unknown once is uploaded: a copy that never gets an answer is not tried for ever.
    if not claim.copy_mode or index is None or part.state != "planned":
        return None
    original, sent_as = claim.parts[index], part.plan.file_name
    try:
        message = await _copy(deps, claim, original, sent_as, send)
    # Telegram's refusal does not say whether it concerns the source or the destination; the upload will.
    except (NoAccessError, RefusedError, ReferenceExpiredError) as error:
        log.info("part.not_copied", set=claim.set_id, part=part.plan.ordinal, reason=str(error))
        return None
    log.info("part.copied", set=claim.set_id, part=part.plan.ordinal, message=message.message_id)
    deps.watcher.bytes_moved(claim.name, "copy", part.plan.offset + part.plan.length, claim.total_size)
    return message


async def _copy(
    deps: Deps,
    claim: Claim,
    original: SourcePart,
    sent_as: str,
    send: Callable[[Document], Awaitable[Message]],
) -> Message:
    try:
        return await send(await _document(deps, claim, original, sent_as))
    except ReferenceExpiredError:
        # It ran out while the message waited for its turn. A fresh one lasts for hours.
        return await send(await _document(deps, claim, original, sent_as))


async def _document(deps: Deps, claim: Claim, original: SourcePart, sent_as: str) -> Document:
    channel = await channel_ref(deps.database, deps.account.id, claim.channel_id)
    try:
        posted = await posted_now(deps.gateway, channel, original.message_id)
    except NotBeforeError as wait:
        # The bytes are at hand: a wait on reading must not hold up publishing.
        raise RefusedError(wait.what) from wait
    return document_to_copy(posted, Hashed(original.document_id, original.size, sent_as))
