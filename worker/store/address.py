"""Database addresses: checking what a person wrote, and the forms our two drivers want."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
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


@dataclass(frozen=True, slots=True)
class Transport:
    """How the bytes get to the database: the hosts that are not this one, and what the driver asks of TLS."""

    elsewhere: tuple[str, ...]
    tls: str

    @property
    def is_proven(self) -> bool:
        """Whether the way is safe from those who would read along, or pass for the server."""
        return not self.elsewhere or self.tls == "verify-full"


def transport_to(address: str) -> Transport:
    """What the address, or else the environment that the driver goes by, says of the way there."""
    url = parse_address(driver_dsn(address))
    named = url.query.get("host", url.host) or os.environ.get("PGHOST", "")
    hosts = ",".join([named] if isinstance(named, str) else named).split(",")
    mode = str(url.query.get("sslmode", os.environ.get("PGSSLMODE", "prefer")))
    return Transport(tuple(host for host in hosts if not _is_here(host)), mode)


def _is_here(host: str) -> bool:
    """A socket of this host, or a name or number of its own."""
    name = host if host.count(":") > 1 else host.partition(":")[0]
    if not name or name.startswith(("/", "@")) or name == "localhost":
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
