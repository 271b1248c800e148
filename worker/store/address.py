"""Database addresses: checking what a person wrote, and the forms our two drivers want."""

from __future__ import annotations

from urllib.parse import urlsplit

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from worker.errors import UserError

_DRIVER = "postgresql+asyncpg"


def parse_address(address: str) -> URL:
    """The address as SQLAlchemy understands it, or an error that says what is wrong with it."""
    example = "like postgresql://user:password@host:5432/database"
    try:
        url = make_url(address)
        urlsplit(address).port  # noqa: B018 - raises on a port that is no number
    except (ArgumentError, ValueError):
        raise UserError("database_url is not a database address", remedy=f"write it {example}") from None
    if url.drivername not in {"postgresql", "postgres", _DRIVER}:
        raise UserError(f"database_url is for {url.drivername}, not PostgreSQL", remedy=f"write it {example}")
    if not url.database:
        raise UserError("database_url names no database", remedy=f"write it {example}")
    return url.set(drivername=_DRIVER)


def engine_url(address: str) -> URL:
    """For SQLAlchemy's async engine."""
    url = parse_address(address)
    # libpq's name for it, which people copy; asyncpg's dialect knows it as ``ssl``.
    query = dict(url.query)
    if "sslmode" in query:
        query["ssl"] = query.pop("sslmode")
    return url.set(query=query)


def driver_dsn(address: str) -> str:
    """For asyncpg itself."""
    return parse_address(address).set(drivername="postgresql").render_as_string(hide_password=False)


def printable(address: str) -> str:
    """Without the password."""
    return parse_address(address).set(drivername="postgresql").render_as_string(hide_password=True)
