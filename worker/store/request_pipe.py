"""Bytes on their way from the worker that executes a request to the command that waits for it.

The two may run on different hosts; the database is what they share. Only a few chunks lie in it at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.store.requests import pipe_name

if TYPE_CHECKING:
    from worker.store.database import Database

# So many chunks may lie in the pipe before whoever fills it has to wait.
CAPACITY = 16

_PUT = text("INSERT INTO request_chunks (request_id, ordinal, data) VALUES (:id, :ordinal, :data)")
_ROOM = text("SELECT count(*) FROM request_chunks WHERE request_id = :id")
_TAKE = text("""
    DELETE FROM request_chunks WHERE request_id = :id RETURNING ordinal, data
""")
_TELL = text("SELECT pg_notify(:channel, '')")


async def has_room(database: Database, request_id: int) -> bool:
    """Whether another chunk may be put in."""
    async with database.reading() as connection:
        waiting: int = (await connection.execute(_ROOM, {"id": request_id})).scalar_one()
        return waiting < CAPACITY


async def put_chunk(database: Database, request_id: int, ordinal: int, data: bytes) -> None:
    """Put a chunk in and let the other end know."""
    async with database.transaction("requests.put") as connection:
        await connection.execute(_PUT, {"id": request_id, "ordinal": ordinal, "data": data})
        await connection.execute(_TELL, {"channel": pipe_name(request_id)})


async def take_chunks(database: Database, request_id: int) -> list[tuple[int, bytes]]:
    """Take out all that is in, in order."""
    async with database.transaction("requests.drain") as connection:
        rows = [(row.ordinal, row.data) for row in await connection.execute(_TAKE, {"id": request_id})]
        if rows:
            await connection.execute(_TELL, {"channel": pipe_name(request_id)})
    return sorted(rows)
