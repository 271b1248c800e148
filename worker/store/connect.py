"""Opening one connection, the same way for the pool, the migrations and the checks; and why it failed."""

from __future__ import annotations

import socket

import asyncpg

from worker.errors import UserError
from worker.store.address import driver_dsn, printable

SUPPORTED_MAJORS = range(15, 19)
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 30.0


async def connect(
    address: str, *, command_seconds: float | None = COMMAND_SECONDS, **server_settings: str
) -> asyncpg.Connection:
    """A connection with deadlines. The address goes to the driver whole, which knows libpq's parameters."""
    return await asyncpg.connect(
        driver_dsn(address),
        timeout=CONNECT_SECONDS,
        command_timeout=command_seconds,
        server_settings={"application_name": "archive-fleet", **server_settings},
    )


async def connect_plainly(address: str) -> asyncpg.Connection:
    """A connection that even a pooler in transaction mode serves: no settings, no named statements."""
    return await asyncpg.connect(
        driver_dsn(address), timeout=CONNECT_SECONDS, command_timeout=CONNECT_SECONDS, statement_cache_size=0
    )


async def check_server(address: str) -> int:
    """The server's major version; a clear error if it cannot be reached or is not one we know."""
    try:
        connection = await connect_plainly(address)
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise explain(address, error) from error
    try:
        major = connection.get_server_version().major
    finally:
        connection.terminate()
    if major not in SUPPORTED_MAJORS:
        raise UserError(
            f"{printable(address)} is PostgreSQL {major}", remedy="use a server of version 15 to 18"
        )
    return major


def explain(address: str, error: BaseException) -> UserError:
    """What a person can do about a connection that could not be opened."""
    what, remedy = _reason(error)
    return UserError(f"{what}: {printable(address)}", remedy=remedy)


def _reason(error: BaseException) -> tuple[str, str]:
    match error:
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            reason = "PostgreSQL refused the login", "check user and password in the address"
        case asyncpg.InvalidCatalogNameError():
            reason = "there is no such database", "create it, or correct the address"
        case asyncpg.ProtocolViolationError():
            reason = f"a pooler stands in the way ({_first_line(error)})", "connect directly to PostgreSQL"
        case asyncpg.TooManyConnectionsError():
            reason = "no connection is free", "raise max_connections, or run fewer workers"
        case asyncpg.PostgresError() | asyncpg.InterfaceError() | ValueError():
            reason = f"PostgreSQL refused us ({_first_line(error)})", "check database_url"
        case socket.gaierror():
            reason = "the host is not known", "check database_url"
        case TimeoutError():
            reason = "no answer in time", "is PostgreSQL running there? check database_url"
        case _:
            reason = (
                f"no connection ({_first_line(error)})",
                "is PostgreSQL running there? check database_url",
            )
    return reason


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
