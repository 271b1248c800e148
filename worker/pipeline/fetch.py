"""Bringing a set's bytes to the disk, hashed on the way."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import ReferenceExpiredError, SetFailedError
from worker.store.channels import channel_ref
from worker.telegram.transfer import download
from worker.workspace.folder import PartFile

if TYPE_CHECKING:
    from pathlib import Path

    from worker.domain.telegram import Document
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim, SourcePart


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
        document = await deps.gateway.document(channel, part.message_id, part.document_id)
        if document.size != part.size:
            raise SetFailedError(
                f"{part.file_name} has {document.size} bytes, not {part.size}", remedy="scan again"
            )
        parts.append(await _fetch_part(deps, part, document, folder / f"part-{number}", whole, progress))
    return Fetched(tuple(parts), whole.digest())


async def _fetch_part(
    deps: Deps, part: SourcePart, document: Document, path: Path, whole: hashlib._Hash, progress: _Progress
) -> FetchedPart:
    own = hashlib.sha256()
    file = PartFile(path)

    def take(data: bytes) -> None:
        file.append(data)
        own.update(data)
        whole.update(data)

    try:
        async for data in download(deps.gateway, document, in_flight=deps.settings.transfer.parts_in_flight):
            await asyncio.to_thread(take, data)
            progress.add(len(data))
    except ReferenceExpiredError as error:
        raise SetFailedError(f"the reference of {part.file_name} ran out while it was read") from error
    finally:
        file.close()
    return FetchedPart(path, part.file_name, part.size, own.digest())


class _Progress:
    def __init__(self, deps: Deps, claim: Claim) -> None:
        self._deps, self._claim, self._done = deps, claim, 0

    def add(self, count: int) -> None:
        self._done += count
        self._deps.watcher.bytes_moved(self._claim.name, "fetch", self._done, self._claim.total_size)
