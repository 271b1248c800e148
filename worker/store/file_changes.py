"""Files that changed or vanished where they were posted, and the sets that lose them.

A set that nobody works on is formed anew. One that is claimed or half published is left alone: its bytes are
checked when they are fetched. One that was published stays what it was; only its source has moved on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.forming import family_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

_LOCK_SETS = text("""
    SELECT s.id, s.state, EXISTS (SELECT FROM uploads u WHERE u.set_id = s.id AND u.state = 'open') AS begun
    FROM archive_sets s WHERE s.id IN (SELECT set_id FROM source_files
        WHERE channel_id = :channel AND message_id = ANY(CAST(:messages AS integer[])) AND set_id IS NOT NULL)
    ORDER BY s.id FOR UPDATE OF s
""")
_FILES = text("""
    SELECT message_id, set_id, file_name FROM source_files
    WHERE channel_id = :channel AND message_id = ANY(CAST(:messages AS integer[]))
""")
_REOPEN = text("""
    UPDATE archive_sets SET state = 'collecting', reason = 'one of its files changed', to_prove = false,
        family = :family, attempts = 0, found_wanting = false, tried = '{}',
        unended = 0, undecided_since = NULL, is_unproven = false, fence = fence + 1,
        updated_at = fleet_now()
    WHERE id = :set
""")
_DETACH = text("""
    UPDATE source_files SET set_id = NULL, part_number = NULL, is_gone = true
    WHERE channel_id = :channel AND message_id = ANY(CAST(:messages AS integer[]))
""")
_SETTLED = ("published", "indexed", "duplicate")


async def release_files(
    connection: AsyncConnection, channel_id: int, messages: Collection[int]
) -> tuple[set[str], set[int]]:
    """Take these messages' files out of their sets and call them gone; a file that is written again is not.

    Returns the families that have to be formed anew, and the messages whose sets are being worked on.
    """
    if not messages:
        return set(), set()
    values = {"channel": channel_id, "messages": list(messages)}
    sets = {row.id: row for row in await connection.execute(_LOCK_SETS, values)}
    families: set[str] = set()
    stuck: set[int] = set()
    reopened: set[int] = set()
    for message_id, set_id, file_name in (await connection.execute(_FILES, values)).all():
        held = sets.get(set_id)
        if held is not None and (held.state == "claimed" or held.begun):
            stuck.add(message_id)
            continue
        families.add(family_of(file_name))
        if held is not None and held.state not in _SETTLED and set_id not in reopened:
            reopened.add(set_id)
            await connection.execute(_REOPEN, {"set": set_id, "family": family_of(file_name)})
    free = [message_id for message_id in messages if message_id not in stuck]
    await connection.execute(_DETACH, {"channel": channel_id, "messages": free})
    return families, stuck
