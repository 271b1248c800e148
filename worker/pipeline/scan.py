"""Reading a source upward from its cursor, and what changed below it.

Rows and cursor are committed together, page by page: whatever the cursor has passed is in the database, and
whatever is in the database was looked at for the sets it may complete.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker.domain.telegram import GENERAL, Message
from worker.log import get_logger
from worker.pipeline.sight import require_all_seen, require_same_sight
from worker.store.cursors import advance_cursor, note_changes
from worker.store.rereading import note_read_again, read_again
from worker.store.set_aside import keep_page
from worker.store.source_files import Kept, forget_absent, forget_files, has_files
from worker.telegram.reading import changes_after, files_between, topic_page_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.pipeline.deps import Deps
    from worker.store.cursors import Source

log = get_logger(__name__)


async def scan_page(deps: Deps, source: Source, *, is_again: bool = False) -> Source:
    """Keep the next page of messages; the source as it stands after it.

    ``is_again``: it lies below the cursor, and is read once more.
    """
    page = await _page(deps, source)
    await require_same_sight(deps, source)
    if source.sees_all and source.can_hide:
        read_to = source.position if is_again else source.last_message_id
        await _require_nothing_hidden(deps, source, page, read_to)
    page = [item for item in page if _id_of(item) > source.position]
    if not page:
        return source.at_end()
    messages = [_in_topic(item, source.topic_id) for item in page if isinstance(item, Message)]
    last = page[-1]
    newest = last.message_id if isinstance(last, Message) else last
    fresh = sum(_id_of(item) > source.last_message_id for item in page)
    if source.sees_all:
        # Before the page: the cursor passes nothing that is still to be forgotten.
        present = [message.message_id for message in messages if message.document is not None]
        await forget_absent(deps.database, source, (source.position, newest), present)
    async with deps.database.transaction("scan.page") as connection:
        kept = await keep_page(connection, source, messages)
        await advance_cursor(connection, source, newest, fresh)
        if is_again:
            await note_read_again(connection, source, newest)
    if fresh:
        log.info(
            "scan.page",
            channel=source.title,
            messages=fresh,
            files=kept.files,
            archives=kept.sets,
            cursor=newest,
        )
    return source.moved_to(newest)


async def _page(deps: Deps, source: Source) -> list[Message | int]:
    """What comes next, with the message that was read last: while that shows, nothing above it is hidden."""
    page = await _page_after(deps, source, max(0, source.position - 1))
    if page and _id_of(page[-1]) <= source.position:
        # Only an answer to the question for more tells the end from a server that repeats itself.
        return await _page_after(deps, source, source.position)
    return page


async def _page_after(deps: Deps, source: Source, message_id: int) -> list[Message | int]:
    if source.topic_id:
        return await topic_page_after(deps.gateway, source.ref, source.topic_id, message_id)
    return await deps.gateway.page_after(source.ref, message_id)


async def _require_nothing_hidden(
    deps: Deps, source: Source, page: Sequence[Message | int], read_to: int
) -> None:
    """Stop if messages that the page lacks are only hidden: a group's history can be cleared for one member.

    That hides everything below some message, and changes nothing else. Telegram is asked, at the price of a
    call, only where the page would have files forgotten, or unread messages passed over, below its first.
    New topics begin like that by nature: in a forum it is asked for their sake once in each reading.
    """
    first = _id_of(page[0]) if page else None
    if first is not None:
        is_passing = first > read_to + 1 and not (source.topic_id and source.asked)
        span = (source.position, first - 1)
        if first <= source.position + 1 or not (is_passing or await has_files(deps.database, source, span)):
            return
    await require_all_seen(deps, source)
    source.asked.add(source.channel_id)


async def verify_by_search(deps: Deps, source: Source, above: int) -> None:
    """Look once more for files above a message, by search.

    To an account from which history is hidden a group's history may show its service messages alone.
    """
    below = 0
    while True:
        found = await files_between(deps.gateway, source.ref, source.topic_id, above, below)
        if not found:
            return
        async with deps.database.transaction("scan.search") as connection:
            messages = [_in_topic(message, source.topic_id) for message in found]
            kept = await keep_page(connection, source, messages)
        if kept.files:
            log.info("scan.found_by_search", channel=source.title, files=kept.files)
        below = min(message.message_id for message in found)


async def follow_changes(deps: Deps, source: Source, *, is_forum: bool) -> Source:
    """Keep the next part of what happened since the channel was last looked at: edits and deletions.

    The source stays where it is while a change concerns a set that is being worked on: nothing else would
    ever bring that change back.
    """
    changes = await changes_after(deps.gateway, source.ref, source.pts)
    await require_same_sight(deps, source)
    if changes.is_gap:
        log.warning("scan.changes_lost", channel=source.title, remedy="what was read is read once more")
    # What is above a channel's cursor will be paged; a forum's does not say how far each topic was read.
    messages = [
        _in_topic(message, (message.topic_id or GENERAL) if is_forum else 0)
        for message in changes.messages
        if is_forum or message.message_id <= source.last_message_id
    ]
    async with deps.database.transaction("scan.changes") as connection:
        kept = await keep_page(connection, source, messages)
        gone = (
            await forget_files(connection, source.channel_id, changes.deleted) if changes.deleted else Kept()
        )
        if kept.held_up or gone.held_up:
            return source
        if changes.is_gap:
            source = await read_again(connection, source, is_forum=is_forum)
        return await note_changes(connection, source, changes.pts)


def _in_topic(message: Message, topic_id: int) -> Message:
    # General's messages do not say that they are General's.
    return replace(message, topic_id=topic_id) if topic_id else message


def _id_of(item: Message | int) -> int:
    return item if isinstance(item, int) else item.message_id
