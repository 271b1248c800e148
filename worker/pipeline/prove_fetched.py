"""The last look before publishing: the parts lie on the disk, and only time bounds what is read."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from worker.archives.reader import FileReader, Part, SetBytes
from worker.domain.archive_name import recognise
from worker.domain.archive_set import Named, PostedFile, archive_set
from worker.domain.listing import LOCAL
from worker.errors import NotWholeError
from worker.log import get_logger

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.pipeline.fetch import Fetched

log = get_logger(__name__)


async def prove_fetched(deps: Deps, fetched: Fetched, *, is_unproven: bool = False) -> None:
    """Raise unless the parts still prove the set whole, contents included.

    ``is_unproven``: or unless they contradict it, where nothing can prove it.

    On a server only headers were read. A part of another archive with the right size and name shows here.
    """
    if len(fetched.parts) == 1:
        return  # complete as posted
    names = [recognise(part.file_name) for part in fetched.parts]
    found = archive_set(
        Named(PostedFile(0, 0, part.file_name, part.size, 0), name)
        for part, name in zip(fetched.parts, names, strict=True)
        if name is not None
    )
    with contextlib.ExitStack() as stack:
        parts = tuple(
            Part(part.file_name, stack.enter_context(FileReader(part.path))) for part in fetched.parts
        )
        indices = tuple(member.name.index for member in found.members)
        verdict = await deps.nursery.prove(SetBytes(found.format, found.scheme, parts, indices), LOCAL)
    if not verdict.complete and not (is_unproven and verdict.undecided):
        raise NotWholeError(f"it is not whole: {verdict.reason}", remedy="post the damaged part again")
    if verdict.unproven:
        log.info("set.partly_proven", parts=[fetched.parts[place].file_name for place in verdict.unproven])
