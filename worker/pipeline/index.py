"""What is inside: the second phase. Whatever goes wrong here leaves the published package as it is."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from worker.archives.reader import SetBytes
from worker.domain.archive_name import Scheme, recognise
from worker.domain.creator import creator_of, tags_of
from worker.domain.listing import Limits, Mark
from worker.errors import (
    ENDS_ACCOUNTS_WORK,
    NoAccessError,
    NotBeforeError,
    OutcomeUnknownError,
    ReferenceExpiredError,
    RetryableError,
    SetFailedError,
)
from worker.log import get_logger
from worker.pipeline.preview import find_preview, photo_beside
from worker.store.metadata import uncount_listing
from worker.store.packages import Metadata, complete
from worker.store.postings import posting_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from worker.archives.reader import Part
    from worker.domain.preview_choice import PostedPhoto
    from worker.pipeline.deps import Deps
    from worker.store.metadata import Attempt
    from worker.store.postings import ArchivePosting

log = get_logger(__name__)
# The archive is not to blame for these, and may be read at another time or by another account.
NOT_THE_ARCHIVE = (
    NotBeforeError,
    RetryableError,
    OutcomeUnknownError,
    ReferenceExpiredError,
    NoAccessError,
    OSError,
    MemoryError,
    *ENDS_ACCOUNTS_WORK,
)


# Of thousands of parts, each under other words of thousands of letters, so many tell what they are about.
_MOST_CAPTIONS = 100


@contextlib.asynccontextmanager
async def counted_try(deps: Deps, attempt: Attempt) -> AsyncIterator[Attempt]:
    """Count and list the package inside: the attempt is none if the archive did not end it."""
    try:
        yield attempt
    except (*NOT_THE_ARCHIVE, asyncio.CancelledError):
        # A worker that is told to stop, or an account that is passed on, says nothing about the archive.
        if attempt.is_counted:
            uncount = partial(uncount_listing, deps.database, attempt)
            await deps.tries.give_back(uncount, at_once=deps.trust.is_trusted)
        raise


async def index(deps: Deps, package_id: int, parts: Sequence[Part], limits: Limits | None = None) -> None:
    """List the archive in a bounded child process, find its picture, and keep what is known about it."""
    archive = _as_set(parts)
    limits = limits or Limits()
    listing = (await deps.nursery.examine(archive, limits)).listing
    posting = await posting_of(deps.database, package_id)
    photo = await photo_beside(deps, posting)
    marks = {mark.value for mark in listing.marks} | ({Mark.UNPROVEN.value} if posting.is_unproven else set())
    metadata = Metadata(
        entries=listing.entries,
        unlisted=listing.entry_count - len(listing.entries),
        marks=tuple(sorted(marks)),
        creator=creator_of(
            topic_name=posting.topic_title,
            archive_name=posting.archive_name,
            channel_title=posting.channel_title,
        ),
        tags=tags_of(category=posting.category, caption=_words_of(posting, photo)),
        preview=await find_preview(deps, posting, photo, archive, limits),
    )
    await complete(deps.database, package_id, metadata)
    log.info("package.indexed", package=package_id, files=listing.entry_count, marks=metadata.marks)


def _as_set(parts: Sequence[Part]) -> SetBytes:
    names = [recognise(part.name) for part in parts]
    known = [name for name in names if name is not None]
    if len(known) < len(names):
        raise SetFailedError(f"{parts[names.index(None)].name!r} is no archive's name")
    # The volume that carries the directory is named like an archive of its own.
    scheme = next((name.scheme for name in known if name.scheme is not Scheme.SINGLE), Scheme.SINGLE)
    return SetBytes(known[0].format, scheme, tuple(parts), tuple(name.index for name in known))


def _words_of(posting: ArchivePosting, photo: PostedPhoto | None) -> str:
    """An album has one caption, and it often stands under the picture."""
    captions = list(islice(dict.fromkeys(file.caption for file in posting.files), _MOST_CAPTIONS))
    if photo is not None and photo.album_id in {file.album_id for file in posting.files} - {None}:
        captions.append(photo.caption)
    return "\n".join(captions)
