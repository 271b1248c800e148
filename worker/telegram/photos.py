"""Pictures that messages show: which of their sizes is enough for a thumbnail, and its bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.domain.telegram import Photo
from worker.errors import OutcomeUnknownError, RefusedError, RetryableError
from worker.telegram.failures import MigrateError

if TYPE_CHECKING:
    from worker.telegram.gateway import Gateway

# The longer edge that a thumbnail needs; anything larger is bytes for nothing.
ENOUGH_PIXELS = 320
_RANGE = 1024 * 1024
# Telegram's own copies of a photo are far smaller; whoever answers with more is not believed.
_MAX_BYTES = 16 * _RANGE


def to_photo(media: Any) -> Photo | None:
    """The picture of a message, if it shows one, in the smallest size that is large enough."""
    if not isinstance(media, raw.types.MessageMediaPhoto) or not isinstance(media.photo, raw.types.Photo):
        return None
    sizes = sorted(
        (max(size.w, size.h), size.type, _bytes_of(size))
        for size in media.photo.sizes
        if isinstance(size, raw.types.PhotoSize | raw.types.PhotoSizeProgressive)
    )
    if not sizes:
        return None
    _, kind, count = next((size for size in sizes if size[0] >= ENOUGH_PIXELS), sizes[-1])
    photo = media.photo
    return Photo(photo.id, photo.access_hash, photo.file_reference, photo.dc_id, kind, count)


def _bytes_of(size: Any) -> int:
    return int(size.size if isinstance(size, raw.types.PhotoSize) else max(size.sizes, default=0))


async def read_photo(gateway: Gateway, photo: Photo) -> bytes:
    """All bytes of the picture; its announced size is a hint, its end is where the server has no more."""
    location = raw.types.InputPhotoFileLocation(
        id=photo.photo_id,
        access_hash=photo.access_hash,
        file_reference=photo.reference,
        thumb_size=photo.size_type,
    )
    found = bytearray()
    async with gateway.permission.parts("upload.getFile", lambda: None) as permission:
        while len(found) % _RANGE == 0:
            query = raw.functions.upload.GetFile(location=location, offset=len(found), limit=_RANGE)
            piece = await permission.part(partial(_once, gateway, photo.dc_id, query))
            found += piece
            if not piece:
                break
            if len(found) > _MAX_BYTES:
                raise RefusedError(f"photo {photo.photo_id} has no end")
    return bytes(found)


async def _once(gateway: Gateway, dc_id: int, query: Any) -> bytes:
    try:
        try:
            answer = await gateway.connections.call_files(dc_id, query)
        except MigrateError as elsewhere:
            answer = await gateway.connections.call_files(elsewhere.dc_id, query)
    except OutcomeUnknownError as error:
        raise RetryableError(error.what) from error
    if not isinstance(answer, raw.types.upload.File):
        raise RetryableError("upload.getFile: redirected to a CDN, which is not followed")
    return bytes(answer.bytes)
