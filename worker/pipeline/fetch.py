"""Bringing a set's bytes to the disk, hashed on the way."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.errors import ReferenceExpiredError, SetFailedError, SourceGoneError
from worker.store.channels import channel_ref
from worker.telegram.transfer import download
from worker.workspace.folder import PartFile

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from worker.domain.telegram import ChannelRef, Document
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim, SourcePart

_MAX_REFERENCES = 20


@dataclass(frozen=True, slots=True)
class FetchedPart:
    """A file of the set on the disk."""

    path: Path
    file_name: str
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Fetched:
    """All files of a set, in order, and what they hash to together."""

    parts: tuple[FetchedPart, ...]
    content_hash: bytes


async def fetch(deps: Deps, claim: Claim) -> Fetched:
    """Download every part. What comes back has the size that was announced, or this raises."""
    folder = await deps.workspace.open(claim.set_id, claim.fence)
    channel = await channel_ref(deps.database, deps.account.id, claim.channel_id)
    whole = hashlib.sha256()
    progress = _Progress(deps, claim)
    parts = []
    for number, part in enumerate(claim.parts):
        source = _Source(deps, channel, part, iter(range(_MAX_REFERENCES)))
        parts.append(await _fetch_part(deps, source, folder / f"part-{number}", whole, progress))
    return Fetched(tuple(parts), whole.digest())


async def _fetch_part(
    deps: Deps, source: _Source, path: Path, whole: hashlib._Hash, progress: _Progress
) -> FetchedPart:
    part = source.part
    own = hashlib.sha256()
    file = PartFile(path)

    def take(data: bytes) -> None:
        file.append(data)
        own.update(data)
        whole.update(data)

    done = 0
    try:
        while done < part.size:
            document = await source.document()
            if document.size != part.size:
                what = f"{part.file_name} has {document.size} bytes, not {part.size}"
                raise SourceGoneError(what, remedy="scan again")
            pieces = download(
                deps.gateway, document, start=done, in_flight=deps.settings.transfer.parts_in_flight
            )
            # A reference that runs out on the way is fetched anew; the bytes so far stay.
            with contextlib.suppress(ReferenceExpiredError):
                async with contextlib.aclosing(pieces):
                    async for data in pieces:
                        await _finished(asyncio.to_thread(take, data))
                        done += len(data)
                        progress.add(len(data))
    finally:
        file.close()
    return FetchedPart(path, part.file_name, part.size, own.digest())


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Wait for a thread even when cancelled: it writes to a file that is about to be closed."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a part comes from, and how often its reference may run out before that is a failure."""

    deps: Deps
    channel: ChannelRef
    part: SourcePart
    references: Iterator[int]

    async def document(self) -> Document:
        if next(self.references, None) is None:
            raise SetFailedError(f"the references of {self.part.file_name} keep running out")
        return await self.deps.gateway.document(self.channel, self.part.message_id, self.part.document_id)


class _Progress:
    def __init__(self, deps: Deps, claim: Claim) -> None:
        self._deps, self._claim, self._done = deps, claim, 0

    def add(self, count: int) -> None:
        self._done += count
        self._deps.watcher.bytes_moved(self._claim.name, "fetch", self._done, self._claim.total_size)
