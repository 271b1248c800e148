"""``worker db``: the schema."""

from __future__ import annotations

import asyncio

import click

from worker.cli.opening import opened, readable_errors
from worker.store import migrations
from worker.store.connect import check_server
from worker.store.server_facts import read_server_facts


@click.group()
def db() -> None:
    """Set up, upgrade and look at the database."""


@db.command()
def upgrade() -> None:
    """Bring the schema to this version's. Safe to run from several processes at once.

    \b
    Example: worker db upgrade
    """
    with readable_errors(), opened() as place:
        asyncio.run(check_server(place.address))
        migrations.upgrade(place.address)
        click.echo(f"schema {migrations.head()}")


@db.command()
def current() -> None:
    """Print the schema the database has, and the one this version needs.

    \b
    Example: worker db current
    """
    with readable_errors(), opened() as place:
        found = asyncio.run(_current(place.address))
        wanted = migrations.head()
        click.echo(f"{found or 'none'} (this version needs {wanted})")
        raise SystemExit(0 if found == wanted else 1)


async def _current(address: str) -> str | None:
    await check_server(address)
    return (await read_server_facts(address)).schema
