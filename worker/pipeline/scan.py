"""Reading a source channel upward from its cursor.

Rows and cursor are committed together, page by page: whatever the cursor has passed is in the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.archive_name import Scheme, recognise
from worker.domain.telegram import Message
from worker.log import get_logger
from worker.store.channels import advance_cursor, note_read_to_end
from worker.store.photos import keep_photos
from worker.store.source_files import FoundFile, keep_found

if TYPE_CHECKING:
    from worker.pipeline.deps import Deps
    from worker.store.channels import Source

log = get_logger(__name__)
PROTECTED = "its source forbids copying"


async def scan_page(deps: Deps, source: Source) -> Source | None:
    """Keep one page of messages; the source with its cursor moved, or None when there is nothing above it."""
    page = await deps.gateway.page_after(source.ref, source.last_message_id)
    if not page:
        await note_read_to_end(deps.database, source)
        return None
    found = [file for item in page if (file := find_file(item, source)) is not None]
    last = page[-1]
    newest = last.message_id if isinstance(last, Message) else last
    async with deps.database.transaction("scan.page") as connection:
        kept = await keep_found(connection, source, found)
        await keep_photos(connection, source, page)
        await advance_cursor(connection, source, newest, len(page))
    log.info("scan.page", channel=source.title, messages=len(page), archives=kept, cursor=newest)
    return source.moved_to(newest)


def find_file(item: Message | int, source: Source) -> FoundFile | None:
    """The file of this message, if it has one. Whatever it is, the cursor must not pass it unseen."""
    if not isinstance(item, Message) or item.document is None:
        return None
    name = recognise(item.document.file_name)
    if name is None or name.scheme is not Scheme.SINGLE:
        return FoundFile(item, None, None)
    protected = (source.is_protected or item.is_protected) and not source.allow_protected
    reason = PROTECTED if protected else "it is empty" if item.document.size == 0 else None
    return FoundFile(item, name.format.value, reason)
