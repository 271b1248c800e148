"""Withdrawn packages as they were published, and how one is published again with the messages it had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.decisions import decide_alone
from worker.store.withdrawals import DELETED

if TYPE_CHECKING:
    from worker.store.database import Database


@dataclass(frozen=True, slots=True)
class WithdrawnPart:
    """A message of a package that was withdrawn."""

    package_id: int
    channel_id: int
    message_id: int
    document_id: int | None
    length: int


_PARTS = text("""
    SELECT p.id, k.dest_channel_id, k.message_id, k.document_id, k.byte_length
    FROM packages p JOIN package_parts k ON k.package_id = p.id
    JOIN memberships m ON m.channel_id = k.dest_channel_id AND m.account_id = :account AND m.can_read
    WHERE p.content_hash = :hash AND p.state = 'withdrawn' ORDER BY k.ordinal
""")
_PUBLISH = text("""
    UPDATE packages SET state = 'published', withdrawn_at = NULL, has_remains = false
    WHERE id = :package AND state = 'withdrawn'
      AND NOT EXISTS (SELECT FROM uploads u WHERE u.content_hash = :hash AND u.state = 'open')
    RETURNING id
""")
# Relies on archive_sets_content.
_WAKE = text("""
    UPDATE archive_sets SET state = 'ready', reason = NULL, not_before = fleet_now(), updated_at = fleet_now()
    WHERE content_hash = :hash AND state = 'skipped' AND starts_with(reason, :declined)
""")


async def withdrawn_parts(database: Database, account_id: int, content_hash: bytes) -> list[WithdrawnPart]:
    """The messages of this content's withdrawn package, in order, if the account reads their channel."""
    async with database.reading() as connection:
        values = {"account": account_id, "hash": content_hash}
        return [WithdrawnPart(*row) for row in await connection.execute(_PARTS, values)]


async def publish_again(database: Database, package_id: int, content_hash: bytes) -> bool:
    """It counts for deduplication again, and the sets that were left alone meanwhile meet it.

    False if it does not: somebody has begun to publish its content anew, or has done so.
    """
    async with database.transaction("packages.seen_again") as connection:
        await decide_alone(connection, content_hash)
        values = {"package": package_id, "hash": content_hash}
        if (await connection.execute(_PUBLISH, values)).one_or_none() is None:
            return False
        await connection.execute(_WAKE, {"hash": content_hash, "declined": DELETED})
        return True
