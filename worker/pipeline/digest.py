"""What the bytes hash to, made durable before anything is decided by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.store.sets import save_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.pipeline.deps import Deps
    from worker.store.sets import Claim


async def digest(deps: Deps, claim: Claim, content_hash: bytes, part_hashes: Sequence[bytes]) -> None:
    """Keep the content hash and one hash per part on the set."""
    await save_hashes(deps.database, claim, content_hash, list(part_hashes))
