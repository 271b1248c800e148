"""upload.getFile and upload.getFileHashes: ranges of documents, read from disk."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.handlers.registry import handles
from worker.sandbox.upload_rules import KIB, MIB, range_refusal

if TYPE_CHECKING:
    from worker.sandbox.call import Call
    from worker.sandbox.ledger.blobs import Blobs
    from worker.sandbox.ledger.rows import Document

HASHED_RANGE = 128 * KIB


def _located(call: Call, location: Any) -> Document:
    """Return the document a location names, if its proofs are good and this is its data centre."""
    if not isinstance(location, (raw.types.InputDocumentFileLocation, raw.types.InputPhotoFileLocation)):
        raise RpcFault(400, "LOCATION_INVALID")
    document = call.ledger.documents.get(location.id)
    if document is None or document.access_hash != location.access_hash:
        raise RpcFault(400, "LOCATION_INVALID")
    call.sandbox.references.check(document.document_id, location.file_reference)
    if document.dc_id != call.key.dc_id:
        raise RpcFault(303, f"FILE_MIGRATE_{document.dc_id}")
    return document


@handles(raw.functions.upload.GetFile)
async def get_file(call: Call, query: Any) -> Any:
    refusal = range_refusal(query.offset, query.limit, precise=bool(query.precise))
    if refusal:
        raise RpcFault(400, refusal)
    document = _located(call, query.location)
    data = call.ledger.blobs.read(document.document_id, query.offset, query.limit)
    return raw.types.upload.File(type=raw.types.storage.FileUnknown(), mtime=document.date, bytes=data)


@handles(raw.functions.upload.GetFileHashes)
async def get_file_hashes(call: Call, query: Any) -> Any:
    """The hashes of the ranges from ``offset`` to the end of its mebibyte."""
    document = _located(call, query.location)
    start = query.offset - query.offset % HASHED_RANGE
    hashes = []
    for offset in range(start, min(start - start % MIB + MIB, document.size), HASHED_RANGE):
        length, digest = _hash_of(call.ledger.blobs, document.document_id, offset)
        hashes.append(raw.types.FileHash(offset=offset, limit=length, hash=digest))
    return hashes


@lru_cache(16 * 1024)
def _hash_of(blobs: Blobs, document_id: int, offset: int) -> tuple[int, bytes]:
    """A document never changes, and clients that download it together ask for the same hashes."""
    data = blobs.read(document_id, offset, HASHED_RANGE)
    return len(data), hashlib.sha256(data).digest()
