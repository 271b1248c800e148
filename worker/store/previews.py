"""Previews: one thumbnail per package, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.preview import Preview, PreviewKind

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from worker.store.database import Database

_REPLACE = text("""
    INSERT INTO previews (package_id, kind, origin, jpeg) VALUES (:package, :kind, :origin, :jpeg)
    ON CONFLICT (package_id) DO UPDATE SET kind = excluded.kind, origin = excluded.origin,
        jpeg = excluded.jpeg, made_at = fleet_now()
""")


async def save_preview(connection: AsyncConnection, package_id: int, preview: Preview | None) -> None:
    """Let this picture stand for the package, inside the transaction that completes it."""
    if preview is None:
        await connection.execute(
            text("DELETE FROM previews WHERE package_id = :package"), {"package": package_id}
        )
        return
    # Text in PostgreSQL knows every character but this one.
    origin = preview.origin.replace("\0", "\ufffd")
    values = {"package": package_id, "kind": preview.kind, "origin": origin, "jpeg": preview.jpeg}
    await connection.execute(_REPLACE, values)


async def preview_of(database: Database, package_id: int) -> Preview | None:
    """The picture that stands for this package; None if none was to be had."""
    async with database.reading() as connection:
        query = text("SELECT kind, origin, jpeg FROM previews WHERE package_id = :package")
        row = (await connection.execute(query, {"package": package_id})).one_or_none()
    return None if row is None else Preview(PreviewKind(row.kind), row.origin, row.jpeg)
