"""Moving file bytes: ranges down, parts up, several under way at once."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING

from pyrogram import raw

from worker.domain.telegram import UploadedFile
from worker.errors import RetryableError
from worker.telegram.failures import MigrateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from worker.domain.telegram import Document
    from worker.telegram.gateway import Gateway

DOWN_BYTES = 1024 * 1024
UP_BYTES = 512 * 1024
# Above this the server wants saveBigFilePart.
BIG_FILE_BYTES = 10 * 1024 * 1024


async def download(gateway: Gateway, document: Document, *, in_flight: int) -> AsyncIterator[bytes]:
    """The file's bytes in order, ``in_flight`` ranges ahead. A short answer is an error, never an end."""
    offsets = iter(range(0, document.size, DOWN_BYTES))
    under_way: deque[asyncio.Task[bytes]] = deque()
    try:
        for offset in offsets:
            under_way.append(asyncio.create_task(read_range(gateway, document, offset)))
            if len(under_way) >= in_flight:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def read_range(gateway: Gateway, document: Document, offset: int, limit: int = DOWN_BYTES) -> bytes:
    """One range of a file, whole or not at all."""
    query = raw.functions.upload.GetFile(
        location=raw.types.InputDocumentFileLocation(
            id=document.document_id,
            access_hash=document.access_hash,
            file_reference=document.reference,
            thumb_size="",
        ),
        offset=offset,
        limit=limit,
    )
    try:
        answer = await gateway.connections.call_files(document.dc_id, query)
    except MigrateError as elsewhere:
        answer = await gateway.connections.call_files(elsewhere.dc_id, query)
    if not isinstance(answer, raw.types.upload.File):
        raise RetryableError("upload.getFile: redirected to a CDN, which is not followed")
    expected = min(limit, document.size - offset)
    if len(answer.bytes) != expected:
        raise RetryableError(f"upload.getFile: {len(answer.bytes)} of {expected} bytes at {offset}")
    return bytes(answer.bytes)


async def upload(
    gateway: Gateway, *, name: str, size: int, read: Callable[[int, int], Awaitable[bytes]], in_flight: int
) -> UploadedFile:
    """Save a file's parts under a fresh file id. Nobody sees them until a message is sent with it."""
    file_id = secrets.randbits(63)
    count = -(-size // UP_BYTES)
    is_big = size > BIG_FILE_BYTES
    room = asyncio.Semaphore(in_flight)

    async def save(part: int) -> None:
        try:
            data = await read(part * UP_BYTES, min(UP_BYTES, size - part * UP_BYTES))
            query = (
                raw.functions.upload.SaveBigFilePart(
                    file_id=file_id, file_part=part, file_total_parts=count, bytes=data
                )
                if is_big
                else raw.functions.upload.SaveFilePart(file_id=file_id, file_part=part, bytes=data)
            )
            if not await gateway.connections.call_files(gateway.home_dc, query):
                raise RetryableError(f"upload: the server did not keep part {part}")
        finally:
            room.release()

    try:
        async with asyncio.TaskGroup() as group:
            for part in range(count):
                await room.acquire()
                group.create_task(save(part))
    except ExceptionGroup as failures:
        # The first failure cancelled the others; it alone says what went wrong.
        raise failures.exceptions[0] from None
    return UploadedFile(file_id, count, name, is_big)
