"""Moving file bytes: ranges down, parts up, as many under way at once as the line and the server bear."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from worker.domain.telegram import UploadedFile
from worker.errors import ReferenceExpiredError, RetryableError, SetFailedError
from worker.telegram.failures import MigrateError
from worker.telegram.fingerprints import Fingerprints
from worker.telegram.part_calls import PartCall, ReadHashes, ReadRange, SavePart, location_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence

    from worker.domain.telegram import Document
    from worker.telegram.depth import Depth
    from worker.telegram.gateway import Gateway
    from worker.telegram.part_calls import RangeHash
    from worker.telegram.permission import FilePermission

DOWN_BYTES = 1024 * 1024
UP_BYTES = 512 * 1024
# Above this the server wants saveBigFilePart.
BIG_FILE_BYTES = 10 * 1024 * 1024
_MOST_REFERENCES = 20
# What is under way when a process is killed is fetched again: less than a tenth of a large file. Of a small
# one it may be more, since a far or narrow line would otherwise stand idle.
_REPEATED_SHARE, _FEWEST_UNDER_WAY = 0.08, 16


def _nothing() -> None:
    """Nobody waits for the line."""


class Target(Protocol):
    """Where a download goes. ``take`` runs in another thread, with bytes that are gone when it returns."""

    def missing(self) -> Iterable[int]:
        """Which ranges of ``DOWN_BYTES`` are still to come."""
        ...

    def take(self, offset: int, data: memoryview) -> None:
        """Keep these bytes."""
        ...


@dataclass(slots=True)
class Place:
    """At which data centre a file lies, as far as the last answers tell."""

    dc_id: int


@dataclass(slots=True)
class _Located(Place):
    """A document there, and the query for its ranges."""

    document: Document
    location: bytes


class Download:
    """One document on its way to a target. ``find`` gives the document with a fresh reference.

    ``nearly_done`` is called once when all ranges that are left fit on the line together: whoever comes
    next may get ready.
    """

    def __init__(
        self,
        gateway: Gateway,
        find: Callable[[], Awaitable[Document]],
        target: Target,
        moved: Callable[[int], None],
        nearly_done: Callable[[], None] = _nothing,
    ) -> None:
        self._gateway, self._find, self._target, self._moved = gateway, find, target, moved
        self._nearly_done = nearly_done
        self._located: _Located | None = None
        self._references = 0
        self._finding = asyncio.Lock()

    async def run(self) -> None:
        """Fetch every range that is missing. A short answer is an error, never an end."""
        located = await self._locate(None)
        missing = list(self._target.missing())
        parts = self._gateway.permission.parts
        depth = self._gateway.connections.depth(located.dc_id, "down")
        async with (
            parts("upload.getFile", depth.narrow) as permission,
            parts("upload.getFileHashes", depth.narrow) as hash_permission,
        ):
            prints = Fingerprints(
                lambda offset: hash_permission.part(lambda: self._hashes(offset)),
                missing,
                unit=DOWN_BYTES,
                service=self._gateway.hash_service,
            )
            try:
                most = max(_FEWEST_UNDER_WAY, int(_REPEATED_SHARE * located.document.size) // DOWN_BYTES)
                work = partial(self._range, permission=permission, prints=prints)
                await _in_depth(depth, missing, work, most=most, nearly_done=self._nearly_done)
            finally:
                await prints.close()

    async def _range(self, part: int, permission: FilePermission, prints: Fingerprints) -> None:
        located = await self._locate(None)
        offset = part * DOWN_BYTES
        expected = min(DOWN_BYTES, located.document.size - offset)
        while True:
            try:
                hashes = await prints.of(offset)
                take = partial(self._once, located, offset, expected, hashes)
                await permission.part(take)
                break
            except ReferenceExpiredError:
                located = await self._locate(located)
        self._moved(expected)

    async def _once(self, located: _Located, offset: int, expected: int, hashes: Sequence[RangeHash]) -> None:
        call = ReadRange(located.location, offset, DOWN_BYTES, expected, self._target.take, hashes)
        await follow(self._gateway, located, call)

    async def _hashes(self, offset: int) -> list[RangeHash]:
        located = await self._locate(None)
        found: list[RangeHash] = await follow(self._gateway, located, ReadHashes(located.location, offset))
        return found

    async def _locate(self, stale: _Located | None) -> _Located:
        """The document's place; asked for again if ``stale`` is all that is known."""
        async with self._finding:
            if self._located is None or self._located is stale:
                if self._references >= _MOST_REFERENCES:
                    raise SetFailedError("the file's references keep running out", remedy="try again later")
                self._references += 1
                document = await self._find()
                dc_id = stale.dc_id if stale else document.dc_id
                self._located = _Located(dc_id, document, location_of(document))
            return self._located


async def download(
    gateway: Gateway, document: Document, *, start: int = 0, in_flight: int
) -> AsyncGenerator[bytes, None]:
    """The file's bytes from ``start`` on, in order, for those who keep no file of it."""
    depth = gateway.connections.depth(document.dc_id, "down")
    under_way: deque[asyncio.Task[bytes]] = deque()
    async with gateway.permission.parts("upload.getFile", depth.narrow) as permission:
        try:
            for offset in range(start, document.size, DOWN_BYTES):
                work = read_range(gateway, document, offset, permission=permission)
                under_way.append(asyncio.create_task(work))
                while len(under_way) >= min(in_flight, depth.limit):
                    yield await under_way.popleft()
            while under_way:
                yield await under_way.popleft()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)


async def read_range(
    gateway: Gateway, document: Document, offset: int, limit: int = DOWN_BYTES, *, permission: FilePermission
) -> bytes:
    """One range of a file, whole or not at all."""
    place = Place(document.dc_id)
    expected = min(limit, document.size - offset)
    call = ReadRange(location_of(document), offset, limit, expected, lambda _, data: bytes(data))
    data: bytes = await permission.part(lambda: follow(gateway, place, call))
    return data


async def follow(gateway: Gateway, place: Place, call: PartCall) -> Any:
    """Make the call where the file lies, also when that turns out to be elsewhere."""
    try:
        return await gateway.connections.call_files(place.dc_id, call)
    except MigrateError as elsewhere:
        place.dc_id = elsewhere.dc_id
        return await gateway.connections.call_files(place.dc_id, call)


class Upload:
    """A file on its way up under a fresh file id. Nobody sees it until a message is sent with it.

    ``fill`` puts the file's bytes from an offset on into a buffer; it runs in another thread. ``nearly_done``
    is called once when all parts that are left fit on the line together.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        name: str,
        size: int,
        fill: Callable[[int, memoryview], None],
        moved: Callable[[int], None],
        nearly_done: Callable[[], None] = _nothing,
    ) -> None:
        self._gateway, self._size, self._fill, self._moved = gateway, size, fill, moved
        self._nearly_done = nearly_done
        self.file = UploadedFile(secrets.randbits(63), -(-size // UP_BYTES), name, size > BIG_FILE_BYTES)

    async def run(self) -> UploadedFile:
        """Save every part."""
        await self._save(range(self.file.part_count), self._nearly_done)
        return self.file

    async def save_again(self, part: int) -> None:
        """Save a part that the server has lost."""
        if part >= self.file.part_count:
            raise RetryableError(f"the server misses part {part} of a file of {self.file.part_count}")
        await self._save([part], _nothing)

    async def _save(self, parts: Sequence[int], nearly_done: Callable[[], None]) -> None:
        depth = self._gateway.connections.depth(self._gateway.home_dc, "up")
        method = "upload.saveBigFilePart" if self.file.is_big else "upload.saveFilePart"
        async with self._gateway.permission.parts(method, depth.narrow) as permission:
            work = partial(self._part, permission=permission)
            await _in_depth(depth, parts, work, most=self.file.part_count, nearly_done=nearly_done)

    async def _part(self, part: int, permission: FilePermission) -> None:
        offset = part * UP_BYTES
        length = min(UP_BYTES, self._size - offset)
        call = SavePart(
            self.file.file_id,
            part,
            self.file.part_count if self.file.is_big else None,
            length,
            lambda buffer: self._fill(offset, buffer),
        )
        await permission.part(lambda: self._gateway.connections.call_files(self._gateway.home_dc, call))
        self._moved(length)


async def _in_depth(
    depth: Depth,
    parts: Sequence[int],
    work: Callable[[int], Coroutine[Any, Any, None]],
    *,
    most: int,
    nearly_done: Callable[[], None],
) -> None:
    """Work on the parts in order, as many at once as the depth allows; the first failure ends them all.

    ``most`` is how many of this file, whatever else is under way.
    """
    own = asyncio.Semaphore(most)

    def left(task: asyncio.Task[None], entered: float, *, is_last: bool) -> None:
        own.release()
        depth.leave(entered, moved=not task.cancelled() and task.exception() is None, is_last=is_last)

    try:
        async with asyncio.TaskGroup() as group:
            told = False
            for place, part in enumerate(parts):
                is_last = place == len(parts) - 1
                if not told and len(parts) - place <= min(most, depth.limit):
                    told = True
                    nearly_done()
                await own.acquire()
                entered = await depth.enter()
                # A callback: a task that is cancelled before it began would not come to a ``finally``.
                group.create_task(work(part)).add_done_callback(
                    partial(left, entered=entered, is_last=is_last)
                )
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
