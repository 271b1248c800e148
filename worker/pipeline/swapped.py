"""Messages that carry another file than was written down: the row is replaced by whoever notices.

An edit is told by an update, unless that was lost; then the file itself tells, when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker.errors import ENDS_ACCOUNTS_WORK, FleetError
from worker.log import get_logger
from worker.store.channels import channel_ref, channel_titles
from worker.store.set_aside import keep_page
from worker.store.source_files import forget_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.pipeline.deps import Deps
    from worker.store.sets import SourcePart

log = get_logger(__name__)
# One call brings so many messages.
_MOST_MESSAGES = 100


@dataclass(frozen=True, slots=True)
class _Origin:
    channel_id: int
    title: str


async def note_swapped(deps: Deps, channel_id: int, parts: Sequence[SourcePart]) -> bool:
    """Write down what these messages carry now; whether any of them carries another file.

    Messages that are not there are left alone: an account may merely not see them.
    """
    known = {part.message_id: (part.document_id, part.size) for part in parts}
    channel = await channel_ref(deps.database, deps.account.id, channel_id)
    ids = list(known)
    found = {}
    for start in range(0, len(ids), _MOST_MESSAGES):
        found.update(await deps.gateway.messages(channel, ids[start : start + _MOST_MESSAGES]))
    swapped = [
        message
        for message in found.values()
        if message.document is None
        or (message.document.document_id, message.document.size) != known[message.message_id]
    ]
    if swapped:
        titles = await channel_titles(deps.database, [channel_id])
        origin = _Origin(channel_id, titles[channel_id])
        async with deps.database.transaction("source.swapped") as connection:
            kept = await keep_page(connection, origin, swapped)
            # What such a message carries is not known here; what it carried is there no more.
            await forget_files(connection, channel_id, kept.set_aside)
        log.info("source.swapped", messages=[message.message_id for message in swapped])
    return bool(swapped)


async def try_to_note_swapped(deps: Deps, channel_id: int, parts: Sequence[SourcePart]) -> None:
    """The same where nothing depends on it: whoever asks for the file next looks again."""
    try:
        await note_swapped(deps, channel_id, parts)
    except ENDS_ACCOUNTS_WORK:
        raise
    except FleetError as error:
        log.info("source.not_looked_at", reason=str(error))
