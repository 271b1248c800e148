"""Pictures that messages show: which of their sizes is enough for a thumbnail, and its bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.domain.telegram import Photo
from worker.errors import RefusedError
from worker.telegram.part_calls import ReadRange, query_for
from worker.telegram.transfer import Place, follow

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
    location = query_for(
        raw.types.InputPhotoFileLocation(
            id=photo.photo_id,
            access_hash=photo.access_hash,
            file_reference=photo.reference,
            thumb_size=photo.size_type,
        )
    )
    place = Place(photo.dc_id)
    found = bytearray()
    async with gateway.permission.parts("upload.getFile", lambda: None) as permission:
        while len(found) % _RANGE == 0:
            call = ReadRange(location, len(found), _RANGE, None, lambda _, data: bytes(data))
            piece = await permission.part(partial(follow, gateway, place, call))
            found += piece
            if not piece:
                break
            if len(found) > _MAX_BYTES:
                raise RefusedError(f"photo {photo.photo_id} has no end")
    return bytes(found)
