"""Where the bytes of a package lie, and which files they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.domain.package_content import PackageContent, StoredFile, StoredPart
from worker.errors import UserError

if TYPE_CHECKING:
    from worker.store.database import Database

_PACKAGE = text("SELECT id, file_name, content_hash, file_size, state FROM packages WHERE id = :package")
_PARTS = text("""
    SELECT dest_channel_id, message_id, document_id, file_name, byte_offset, byte_length
    FROM package_parts WHERE package_id = :package ORDER BY byte_offset, ordinal
""")
_FILES = text("SELECT file_name, size FROM package_originals WHERE package_id = :package ORDER BY ordinal")


async def content_of(database: Database, package_id: int) -> PackageContent:
    """All about the bytes of one package."""
    async with database.reading() as connection:
        package = (await connection.execute(_PACKAGE, {"package": package_id})).one_or_none()
        if package is None:
            raise UserError(f"there is no package {package_id}", remedy="see: worker packages list")
        parts = await connection.execute(_PARTS, {"package": package_id})
        files = await connection.execute(_FILES, {"package": package_id})
        return PackageContent(
            package_id=package.id,
            name=package.file_name,
            content_hash=package.content_hash,
            size=package.file_size,
            state=package.state,
            parts=tuple(StoredPart(*part) for part in parts),
            files=tuple(StoredFile(*file) for file in files),
        )
