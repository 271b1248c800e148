"""Documents that are published already: the same ids are the same bytes, and nothing has to be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.store.originals import package_of_documents

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim


async def known_package(deps: Deps, claim: Claim) -> int | None:
    """The published package that consists of the set's documents, in their order; None if there is none."""
    async with deps.database.reading() as connection:
        return await package_of_documents(connection, [part.document_id for part in claim.parts])
