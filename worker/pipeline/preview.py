"""Finding the picture that stands for a package: one that was posted with it, else one inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.archive_name import ArchiveFormat, recognise
from worker.domain.archive_set import Named, archive_set
from worker.domain.preview import Preview, PreviewKind
from worker.domain.preview_choice import PostedPhoto, nearest_photo
from worker.errors import NoAccessError, ReferenceExpiredError, RefusedError, UserError
from worker.log import get_logger
from worker.store.channels import channel_ref
from worker.store.photos import photos_near
from worker.telegram.photos import read_photo

if TYPE_CHECKING:
    from worker.archives.reader import SetBytes
    from worker.domain.listing import Limits
    from worker.pipeline.deps import Deps
    from worker.store.postings import ArchivePosting

log = get_logger(__name__)
# The photo is not to be had by this account, or no more. What passes by itself is tried again with the stub.
_NOT_TO_BE_HAD = (NoAccessError, ReferenceExpiredError, RefusedError, UserError)
# Their members are reached only by unpacking all that comes before: too dear where reads cost network.
_STREAMED = {ArchiveFormat.TAR_GZ, ArchiveFormat.TAR_BZ2, ArchiveFormat.TAR_XZ, ArchiveFormat.TAR_ZST}


async def photo_beside(deps: Deps, posting: ArchivePosting) -> PostedPhoto | None:
    """The photo that was posted for this archive, if one was."""
    named = [(file, recognise(file.file_name)) for file in posting.files]
    members = [Named(file, name) for file, name in named if name is not None]
    if posting.channel_id is None or not members:
        return None
    found = archive_set(members)
    return nearest_photo(found, await photos_near(deps.database, posting.channel_id, found))


async def find_preview(
    deps: Deps, posting: ArchivePosting, photo: PostedPhoto | None, archive: SetBytes, limits: Limits
) -> Preview | None:
    """A thumbnail of the posted photo, else of the best picture inside; None where there is neither."""
    if photo is not None and posting.channel_id is not None:
        jpeg = await _posted(deps, posting.channel_id, photo.message_id)
        if jpeg is not None:
            return Preview(PreviewKind.POSTED, str(photo.message_id), jpeg)
    if not limits.verify_bytes and archive.format in _STREAMED:
        return None
    inside = await deps.nursery.preview(archive, limits)
    return None if inside is None else Preview(PreviewKind.INSIDE, inside.path, inside.jpeg)


async def _posted(deps: Deps, channel_id: int, message_id: int) -> bytes | None:
    try:
        channel = await channel_ref(deps.database, deps.account.id, channel_id)
        message = (await deps.gateway.messages(channel, [message_id])).get(message_id)
        if message is None or message.photo is None:
            return None
        picture = await read_photo(deps.gateway, message.photo)
    except _NOT_TO_BE_HAD as error:
        log.info("preview.not_to_be_had", channel=channel_id, message=message_id, reason=str(error))
        return None
    return await deps.nursery.thumbnail(picture)
