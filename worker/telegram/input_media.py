"""From our own files to what a message is sent with."""

from __future__ import annotations

from typing import Any

from pyrogram import raw

from worker.domain.telegram import Document, UploadedFile


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
