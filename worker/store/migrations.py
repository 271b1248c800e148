"""The version of the schema: what the code needs, what the database has, and how to get there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import alembic.command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

import worker
from worker import faults
from worker.errors import UserError

if TYPE_CHECKING:
    from worker.store.database import Database


def _config(address: str = "") -> Config:
    package = Path(worker.__file__).parent
    # The installed package carries the migrations; a checkout has them beside it.
    inside = package / "migrations"
    config = Config()
    config.set_main_option("script_location", str(inside if inside.exists() else package.parent / "alembic"))
    config.set_main_option("path_separator", "os")
    config.attributes["address"] = address
    return config


def head() -> str:
    """The revision this code was written for."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None, "there is always a first migration"
    return revision


def upgrade(address: str, revision: str = "head") -> None:
    """Bring the schema to ``revision``. Any number of processes may do so at once."""
    with faults.around("db.upgrade"):
        alembic.command.upgrade(_config(address), revision)


def downgrade(address: str, revision: str) -> None:
    """Take the schema back to ``revision``."""
    with faults.around("db.downgrade"):
        alembic.command.downgrade(_config(address), revision)


async def current(database: Database) -> str | None:
    """The revision the database has; None if it was never set up."""
    async with database.reading() as connection:
        exists = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
        if not exists:
            return None
        version: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
        return version


async def require_current(database: Database) -> None:
    """Refuse to work on a schema that is older or newer than this code."""
    found, wanted = await current(database), head()
    if found == wanted:
        return
    known = await asyncio.to_thread(_known_revisions)
    if found is None or found in known:
        has = "has no schema yet" if found is None else f"has schema {found}, this version needs {wanted}"
        raise UserError(f"the database {has}", remedy="run: worker db upgrade")
    raise UserError(
        f"the database has schema {found}, newer than this version's {wanted}",
        remedy="upgrade archive-fleet on this host",
    )


def _known_revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
