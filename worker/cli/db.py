"""``worker db``: the schema."""

from __future__ import annotations

import asyncio

import click

from worker.cli.opening import database, opened, readable_errors
from worker.store import migrations


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
        asyncio.run(_reachable(place.address))
        # Alembic runs a loop of its own, so not inside ours.
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


async def _reachable(address: str) -> None:
    async with database(address, any_schema=True):
        pass


async def _current(address: str) -> str | None:
    async with database(address, any_schema=True) as opened_database:
        return await migrations.current(opened_database)
