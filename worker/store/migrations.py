"""The version of the schema: what the code needs, what the database has, and how to get there."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, ProgrammingError

import worker
from worker import faults
from worker.errors import RetryableError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alembic.config import Config

    from worker.store.database import Database


# Alembic is imported where it is used: most commands only ask whether the schema is the right one, and a
# quarter of the time they take to start would go into a library they do not need.


def _scripts() -> Path:
    package = Path(worker.__file__).parent
    # The installed package carries the migrations; a checkout has them beside it.
    inside = package / "migrations"
    return inside if inside.exists() else package.parent / "alembic"


def _config(address: str = "") -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    # The percent sign is special to the parser that Alembic keeps its options in.
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["address"] = address
    return config


def head() -> str:
    """The revision this code was written for: migrations are numbered, and files are named after them."""
    return max(path.name.partition("_")[0] for path in (_scripts() / "versions").glob("[0-9]*_*.py"))


def upgrade(address: str, revision: str = "head") -> None:
    """Bring the schema to ``revision``. Any number of processes may do so at once.

    Alembic runs an event loop of its own: call this outside of one.
    """
    from alembic import command  # noqa: PLC0415

    with faults.around("db.upgrade"), _readable_refusals():
        command.upgrade(_config(address), revision)


def downgrade(address: str, revision: str) -> None:
    """Take the schema back to ``revision``."""
    from alembic import command  # noqa: PLC0415

    with faults.around("db.downgrade"), _readable_refusals():
        command.downgrade(_config(address), revision)


@contextlib.contextmanager
def _readable_refusals() -> Iterator[None]:
    from alembic.util import CommandError  # noqa: PLC0415

    try:
        yield
    except CommandError as error:
        raise UserError(
            f"the schema is not one of this version's: {error}", remedy="upgrade archive-fleet on this host"
        ) from error
    except ProgrammingError as error:
        reason = str(error.orig).rpartition(": ")[2]
        raise UserError(
            f"PostgreSQL refused to change the schema: {reason}",
            remedy="use a role that owns the database, or an empty database",
        ) from error
    except (DBAPIError, OSError, TimeoutError) as error:
        # All in one transaction: it was either done or left undone, and doing it again is safe.
        reason = str(error).splitlines()[0]
        raise RetryableError(
            f"the change of the schema was cut short: {reason}", remedy="run it again"
        ) from error


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
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
