"""How much of the destinations an account sees, asked before it concludes anything from what it misses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import NoAccessError
from worker.store.reach import note_no_access
from worker.store.visibility import note_visibility, unasked_destinations
from worker.telegram.reading import first_visible_message

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps


async def ask_for_sight(deps: Deps) -> None:
    """Ask Telegram once for each destination; where the account is shut out, that is noted instead."""
    for channel_id, ref in await unasked_destinations(deps.database, deps.account.id):
        try:
            first = await first_visible_message(deps.gateway, ref)
        except NoAccessError:
            await note_no_access(deps.database, deps.account.id, channel_id)
        else:
            await note_visibility(deps.database, deps.account.id, channel_id, first)
