"""Where a PostgreSQL is reached: at a port, or at a socket as the embedded one is."""

import asyncio

from sqlalchemy.engine import URL, make_url


def place_of(database_url: str) -> tuple[str, int]:
    """Its host, which is a folder where it listens on a socket, and its port."""
    url = make_url(database_url)
    return url.host or url.query.get("host") or "127.0.0.1", url.port or int(url.query.get("port", 5432))


async def reach(database_url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to it without a word said."""
    host, port = place_of(database_url)
    if host.startswith("/"):
        return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
    return await asyncio.open_connection(host, port)


def over_a_line(database_url: str, port: int) -> str:
    """The same address by way of a line that listens on this port of ours."""
    url: URL = make_url(database_url).set(host="127.0.0.1", port=port)
    query = {name: value for name, value in url.query.items() if name not in ("host", "port")}
    return url.set(query=query).render_as_string(hide_password=False)
