"""Bringing a set's bytes to the disk, hashed on the way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.errors import RetryableError, SourceGoneError
from worker.store.channels import channel_ref
from worker.telegram.transfer import DOWN_BYTES, Download
from worker.workspace.part_file import PartFile
from worker.workspace.set_hash import SetHash

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from worker.domain.telegram import ChannelRef, Document
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


async def fetch(deps: Deps, claim: Claim, nearly_done: Callable[[], None] = lambda: None) -> Fetched:
    """Download every part. What comes back has the size that was announced, or this raises.

    What an earlier owner of the set has fetched on this disk is not fetched again. ``nearly_done`` is called
    when little is left to be asked for.
    """
    folder = await deps.workspace.open(claim.set_id, claim.fence)
    channel = await channel_ref(deps.database, deps.account.id, claim.channel_id)
    progress = _Progress(deps, claim)
    parts: list[FetchedPart] = []
    with SetHash() as digest:
        for number, part in enumerate(claim.parts):
            file = await asyncio.to_thread(_part_file, folder / f"part-{number}", part, digest)
            is_last = part is claim.parts[-1]
            try:
                await _fetch_part(deps, channel, part, file, progress, nearly_done if is_last else _not_yet)
            finally:
                await _finished(asyncio.to_thread(file.close))
            parts.append(FetchedPart(file.path, part.file_name, part.size, digest.end_part()))
        return Fetched(tuple(parts), digest.content())


def _part_file(path: Path, part: SourcePart, digest: SetHash) -> PartFile:
    file = PartFile(path, part.size, unit=DOWN_BYTES, identity=str(part.document_id), digests=[digest])
    file.hash_what_is_there()
    return file


def _not_yet() -> None:
    """Other parts of the set come first."""


async def _fetch_part(
    deps: Deps,
    channel: ChannelRef,
    part: SourcePart,
    file: PartFile,
    progress: _Progress,
    nearly_done: Callable[[], None],
) -> None:
    async def find() -> Document:
        document = await deps.gateway.document(channel, part.message_id, part.document_id)
        if document.size != part.size:
            what = f"{part.file_name} has {document.size} bytes, not {part.size}"
            raise SourceGoneError(what, remedy="scan again")
        return document

    progress.add(file.done)
    await Download(deps.gateway, find, file, progress.add, nearly_done).run()
    await _finished(asyncio.to_thread(file.hash_what_is_there))
    if not file.is_complete:
        raise RetryableError(f"{part.file_name}: the download ended before its end")


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Wait for a thread even when cancelled: it works on a file that is about to be closed."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class _Progress:
    def __init__(self, deps: Deps, claim: Claim) -> None:
        self._deps, self._claim, self._done = deps, claim, 0

    def add(self, count: int) -> None:
        self._done += count
        self._deps.watcher.bytes_moved(self._claim.name, "fetch", self._done, self._claim.total_size)
