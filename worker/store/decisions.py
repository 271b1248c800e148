"""Which messages stand for a content, decided by one transaction at a time.

A content's lock can be lost, and be somebody else's before that is noticed. What is decided under it is
therefore looked at once more in the transaction that decides: an upload is begun only where no package is
published, and a package published without an upload only where none is open. Neither sees the other before it
is committed; so they come one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

# The first of two numbers, so that it is no lock of a content, which sessions hold for as long as they work.
_DECIDING = 1_094_927_704
_ALONE = text("SELECT pg_advisory_xact_lock(:deciding, :content)")


async def decide_alone(connection: AsyncConnection, content_hash: bytes) -> None:
    """Have nobody else decide about this content before this transaction has ended."""
    content = int.from_bytes(content_hash[:4], "big", signed=True)
    await connection.execute(_ALONE, {"deciding": _DECIDING, "content": content})
