"""Database addresses: checking what a person wrote, and the forms our two drivers want."""

from __future__ import annotations

from urllib.parse import urlsplit

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from worker.errors import UserError

_DRIVER = "postgresql+asyncpg"


def parse_address(address: str) -> URL:
    """The address as SQLAlchemy understands it, or an error that says what is wrong with it."""
    example = "like postgresql://user@host:5432/database"
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


def driver_dsn(address: str) -> str:
    """For asyncpg, which understands libpq's parameters."""
    url = parse_address(address).set(drivername="postgresql")
    # SQLAlchemy's name for it, which people copy.
    query = dict(url.query)
    if "ssl" in query:
        query["sslmode"] = query.pop("ssl")
    return url.set(query=query).render_as_string(hide_password=False)


def printable(address: str) -> str:
    """Without the password, and without parameters, which may hold one too: but for a socket's folder."""
    url = parse_address(address)
    folder = url.query.get("host", "") if not url.host else ""
    query = {"host": folder} if folder else {}
    return url.set(drivername="postgresql", query=query).render_as_string(hide_password=True)
