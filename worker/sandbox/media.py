"""From what a client wants to send to a document of the ledger."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

from pyrogram import raw
from pyrogram.raw.core import Vector

from worker.sandbox.faults import RpcFault
from worker.sandbox.ledger.database import new_id
from worker.sandbox.ledger.rows import Role
from worker.sandbox.upload_rules import file_refusal

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.rows import Document


async def resolve(call: Call, media: Any) -> Document:
    """Return the document for an InputMedia: uploaded bytes, or one that exists already."""
    match media:
        case raw.types.InputMediaUploadedDocument():
            kind = "document" if media.force_file else kind_of(media.attributes)
            return await _uploaded(call, media.file, kind, media.mime_type, list(media.attributes))
        case raw.types.InputMediaUploadedPhoto():
            return await _uploaded(call, media.file, "photo", "image/jpeg", [])
        case raw.types.InputMediaDocument() | raw.types.InputMediaPhoto():
            return _existing(call, media.id)
    raise RpcFault(400, "MEDIA_INVALID")


def kind_of(attributes: list[Any]) -> str:
    """Return the kind by which search filters tell a file."""
    kinds = {
        raw.types.DocumentAttributeVideo: "video",
        raw.types.DocumentAttributeAudio: "audio",
        raw.types.DocumentAttributeSticker: "sticker",
        raw.types.DocumentAttributeAnimated: "animation",
    }
    return next((kinds[type(attribute)] for attribute in attributes if type(attribute) in kinds), "document")


async def _uploaded(call: Call, file: Any, kind: str, mime: str, attributes: list[Any]) -> Document:
    documents, user_id = call.ledger.documents, call.me.user_id
    upload = documents.upload(user_id, file.id)
    if upload is not None and upload["document_id"] is not None:
        document = documents.get(upload["document_id"])
        assert document is not None
        return document
    big = isinstance(file, raw.types.InputFileBig)
    parts = documents.parts(user_id, file.id)
    if file.parts < 1 or (upload is not None and bool(upload["big"]) != big):
        raise RpcFault(400, "FILE_PARTS_INVALID")
    refusal = file_refusal(parts, file.parts, big=big)
    if refusal:
        raise RpcFault(400, refusal)
    sizes = [parts[part] for part in range(file.parts)]
    await _check_md5(call, file, sizes)
    document_id = new_id()
    try:
        await asyncio.to_thread(call.ledger.blobs.finish, user_id, file.id, sizes, document_id)
    except FileNotFoundError as gone:
        # The server was killed between moving the bytes and writing that down: they have to come again.
        documents.lose_parts(user_id, list(parts))
        raise RpcFault(400, "FILE_PART_0_MISSING") from gone
    named = [a.file_name for a in attributes if isinstance(a, raw.types.DocumentAttributeFilename)]
    with call.ledger.db.transaction():
        document = documents.add(
            document_id,
            kind=kind,
            mime=mime,
            size=sum(sizes),
            file_name=named[0] if named else file.name,
            attributes=bytes(Vector(attributes)),
            dc_id=call.sandbox.options.dc_id,
        )
        documents.uploaded_as(user_id, file.id, document_id)
    return document


async def _check_md5(call: Call, file: Any, sizes: list[int]) -> None:
    expected = getattr(file, "md5_checksum", "")
    if not expected:
        return
    data = await asyncio.to_thread(call.ledger.blobs.upload_bytes, call.me.user_id, file.id, sizes)
    if hashlib.md5(data, usedforsecurity=False).hexdigest() != expected.lower():
        raise RpcFault(400, "MD5_CHECKSUM_INVALID")


def _existing(call: Call, named: Any) -> Document:
    """A document sent again by reference: the caller must see its source, and the source must allow it."""
    document = call.ledger.documents.get(named.id)
    if document is None or document.access_hash != named.access_hash:
        raise RpcFault(400, "MEDIA_EMPTY")
    box, message_id = call.sandbox.references.check(document.document_id, named.file_reference)
    check_copyable(call, box, message_id)
    return document


def check_copyable(call: Call, box: int, message_id: int) -> None:
    """Refuse to carry content out of a protected place, or out of one the caller does not see."""
    message = call.ledger.messages.get(box, message_id)
    if _is_protected(call, box) or (message is not None and message.noforwards):
        raise RpcFault(400, "CHAT_FORWARDS_RESTRICTED")


def _is_protected(call: Call, box: int) -> bool:
    """Whether everything in this place is protected; ``CHANNEL_PRIVATE`` if the caller does not see it."""
    if box < 0:
        return False
    channel = call.ledger.channels.need(box)
    member = call.ledger.channels.member(box, call.me.user_id)
    outside = member is None or not member.inside
    if (outside and not channel.username) or (member and member.role is Role.KICKED):
        raise RpcFault(400, "CHANNEL_PRIVATE")
    return bool(channel.noforwards)
