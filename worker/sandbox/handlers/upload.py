"""upload.saveFilePart and upload.saveBigFilePart: bytes go straight to disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.tl import boolean
from worker.sandbox.upload_rules import max_parts, part_refusal

if TYPE_CHECKING:
    from worker.sandbox.call import Call


@handles(raw.functions.upload.SaveFilePart)
async def save_file_part(call: Call, query: Any) -> Any:
    return _save(call, query, total=None)


@handles(raw.functions.upload.SaveBigFilePart)
async def save_big_file_part(call: Call, query: Any) -> Any:
    return _save(call, query, total=query.file_total_parts)


def _save(call: Call, query: Any, *, total: int | None) -> Any:
    documents, user_id, file_id, part = call.ledger.documents, call.me.user_id, query.file_id, query.file_part
    last = part if total is None else total - 1
    refusal = part_refusal(
        part,
        len(query.bytes),
        limit=max_parts(premium=bool(call.me.premium)),
        total=total,
        known=documents.part_size(user_id, file_id, before=last),
    )
    if refusal:
        raise RpcFault(400, refusal)
    upload = documents.upload(user_id, file_id)
    if upload is None:
        documents.begin_upload(user_id, file_id, big=total is not None, total=total or 0)
    elif upload["total"] != (total or 0):
        raise RpcFault(400, "FILE_PARTS_INVALID")
    elif upload["document_id"] is not None:
        # The file was already sent: a part that comes late changes nothing.
        return boolean(True)
    call.ledger.blobs.write_part(user_id, file_id, part, query.bytes)
    documents.save_part(user_id, file_id, part, len(query.bytes))
    return boolean(True)
