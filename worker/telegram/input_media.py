"""From our own files to what a message is sent with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.domain.telegram import Document, UploadedFile
from worker.telegram.convert import to_document

if TYPE_CHECKING:
    from worker.domain.telegram import ChannelRef
    from worker.telegram.gateway import Gateway


async def make_document(
    gateway: Gateway, channel: ChannelRef, file: UploadedFile, mime_type: str
) -> Document | None:
    """Make the saved parts a document, which nobody sees before a message shows it.

    None if the server answers with something else.
    """
    answer = await gateway.read(
        raw.functions.messages.UploadMedia(
            peer=raw.types.InputPeerChannel(channel_id=channel.telegram_id, access_hash=channel.access_hash),
            media=input_media(file, mime_type),
        ),
        channel,
    )
    return to_document(answer)


def input_media(file: UploadedFile | Document, mime_type: str) -> Any:
    """Saved parts become a document of this type; a document that exists is named, and stays what it is."""
    if isinstance(file, Document):
        return raw.types.InputMediaDocument(
            id=raw.types.InputDocument(
                id=file.document_id, access_hash=file.access_hash, file_reference=file.reference
            )
        )
    return raw.types.InputMediaUploadedDocument(
        file=_input_file(file),
        mime_type=mime_type,
        attributes=[raw.types.DocumentAttributeFilename(file_name=file.name)],
        force_file=True,
    )


def _input_file(file: UploadedFile) -> Any:
    if file.is_big:
        return raw.types.InputFileBig(id=file.file_id, parts=file.part_count, name=file.name)
    return raw.types.InputFile(id=file.file_id, parts=file.part_count, name=file.name, md5_checksum=file.md5)
