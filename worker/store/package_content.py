"""Where the bytes of a package lie, and which files they were."""

from __future__ import annotations

import re
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


async def find_package(database: Database, named: str) -> int:
    """The package that a person means by its number or its content hash."""
    if re.fullmatch(r"[0-9]{1,18}", named):
        return int(named)
    if not re.fullmatch(r"[0-9a-fA-F]{64}", named):
        raise UserError(f"{named!r} names no package", remedy="give its number, from: worker packages list")
    async with database.reading() as connection:
        query = text("SELECT id FROM packages WHERE content_hash = :hash")
        found = (await connection.execute(query, {"hash": bytes.fromhex(named)})).scalar_one_or_none()
    if found is None:
        raise UserError("no package has this content hash", remedy="see: worker packages list")
    return int(found)


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
