"""Reading a source channel upward from its cursor.

Rows and cursor are committed together, page by page: whatever the cursor has passed is in the database, and
whatever is in the database was looked at for the sets it may complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.telegram import Message
from worker.log import get_logger
from worker.store.channels import advance_cursor, note_read_to_end
from worker.store.photos import keep_photos
from worker.store.source_files import keep_files

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.channels import Source

log = get_logger(__name__)


async def scan_page(deps: Deps, source: Source) -> Source | None:
    """Keep one page of messages; the source with its cursor moved, or None when there is nothing above it."""
    page = await deps.gateway.page_after(source.ref, source.last_message_id)
    if not page:
        await note_read_to_end(deps.database, source)
        return None
    messages = [item for item in page if isinstance(item, Message)]
    last = page[-1]
    newest = last.message_id if isinstance(last, Message) else last
    async with deps.database.transaction("scan.page") as connection:
        kept = await keep_files(connection, source.channel_id, messages)
        await keep_photos(connection, source, page)
        await advance_cursor(connection, source, newest, len(page))
    log.info(
        "scan.page",
        channel=source.title,
        messages=len(page),
        files=kept.files,
        archives=kept.sets,
        cursor=newest,
    )
    return source.moved_to(newest)
