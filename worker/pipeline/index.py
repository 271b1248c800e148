"""What is inside: the second phase. Whatever goes wrong here leaves the published package as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.archives.reader import SetBytes
from worker.domain.archive_name import recognise
from worker.log import get_logger
from worker.store.packages import complete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.archives.reader import Part
    from worker.pipeline.deps import Deps

log = get_logger(__name__)


async def index(deps: Deps, package_id: int, parts: Sequence[Part]) -> None:
    """List the archive in a bounded child process and keep what it holds."""
    names = [recognise(part.name) for part in parts]
    first = names[0]
    assert first is not None, "only recognised names become sets"
    archive = SetBytes(first.format, first.scheme, tuple(parts), tuple(name.index for name in names if name))
    examination = await deps.nursery.examine(archive)
    listing = examination.listing
    await complete(deps.database, package_id, listing.entries, [mark.value for mark in listing.marks], None)
    log.info("package.indexed", package=package_id, files=listing.entry_count, marks=sorted(listing.marks))
