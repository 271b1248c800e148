"""Moving file bytes: ranges down, parts up, several under way at once."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.domain.telegram import UploadedFile
from worker.errors import OutcomeUnknownError, RetryableError
from worker.telegram.failures import MigrateError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from worker.domain.telegram import Document
    from worker.telegram.gateway import Gateway
    from worker.telegram.permission import FilePermission

DOWN_BYTES = 1024 * 1024
UP_BYTES = 512 * 1024
# Above this the server wants saveBigFilePart.
BIG_FILE_BYTES = 10 * 1024 * 1024


class Depth:
    """How many parts are under way; narrowed when the server asks for patience, never below one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def narrow(self) -> None:
        self.limit = max(1, self.limit - 1)


async def download(
    gateway: Gateway, document: Document, *, start: int = 0, in_flight: int
) -> AsyncGenerator[bytes, None]:
    """The file's bytes from ``start`` on, in order. A short answer is an error, never an end."""
    depth = Depth(in_flight)
    under_way: deque[asyncio.Task[bytes]] = deque()
    async with gateway.permission.parts("upload.getFile", depth.narrow) as permission:
        try:
            for offset in range(start, document.size, DOWN_BYTES):
                work = read_range(gateway, document, offset, permission=permission)
                under_way.append(asyncio.create_task(work))
                while len(under_way) >= depth.limit:
                    yield await under_way.popleft()
            while under_way:
                yield await under_way.popleft()
        finally:
            await _cancel(under_way)


async def read_range(
    gateway: Gateway, document: Document, offset: int, limit: int = DOWN_BYTES, *, permission: FilePermission
) -> bytes:
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

    async def once() -> bytes:
        try:
            answer = await _transfer(gateway, document.dc_id, query)
        except MigrateError as elsewhere:
            answer = await _transfer(gateway, elsewhere.dc_id, query)
        if not isinstance(answer, raw.types.upload.File):
            raise RetryableError("upload.getFile: redirected to a CDN, which is not followed")
        expected = min(limit, document.size - offset)
        if len(answer.bytes) != expected:
            raise RetryableError(f"upload.getFile: {len(answer.bytes)} of {expected} bytes at {offset}")
        return bytes(answer.bytes)

    return await permission.part(once)


async def upload(
    gateway: Gateway, *, name: str, size: int, read: Callable[[int, int], Awaitable[bytes]], in_flight: int
) -> UploadedFile:
    """Save a file's parts under a fresh file id. Nobody sees them until a message is sent with it."""
    file_id = secrets.randbits(63)
    count = -(-size // UP_BYTES)
    is_big = size > BIG_FILE_BYTES
    depth = Depth(in_flight)
    under_way: deque[asyncio.Task[None]] = deque()

    async def save(part: int, permission: FilePermission) -> None:
        data = await read(part * UP_BYTES, min(UP_BYTES, size - part * UP_BYTES))
        query = (
            raw.functions.upload.SaveBigFilePart(
                file_id=file_id, file_part=part, file_total_parts=count, bytes=data
            )
            if is_big
            else raw.functions.upload.SaveFilePart(file_id=file_id, file_part=part, bytes=data)
        )

        async def once() -> None:
            if not await _transfer(gateway, gateway.home_dc, query):
                raise RetryableError(f"upload: the server did not keep part {part}")

        await permission.part(once)

    method = "upload.saveBigFilePart" if is_big else "upload.saveFilePart"
    async with gateway.permission.parts(method, depth.narrow) as permission:
        try:
            for part in range(count):
                under_way.append(asyncio.create_task(save(part, permission)))
                while len(under_way) >= depth.limit:
                    await under_way.popleft()
            while under_way:
                await under_way.popleft()
        finally:
            await _cancel(under_way)
    return UploadedFile(file_id, count, name, is_big)


async def _transfer(gateway: Gateway, dc_id: int, query: Any) -> Any:
    try:
        return await gateway.connections.call_files(dc_id, query)
    except OutcomeUnknownError as error:
        # Nobody sees a part: saving or reading it again changes nothing.
        raise RetryableError(error.what) from error


async def _cancel(tasks: deque[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
