"""``worker db``: the schema."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from worker.cli.opening import Opened, database, opened, readable_errors, upgrade_embedded
from worker.plain_text import to_json
from worker.status.wording import count_of
from worker.store import migrations
from worker.store.connect import check_server
from worker.store.governor_store import GovernorStore
from worker.store.server_facts import read_server_facts
from worker.store.upkeep import take_turn

if TYPE_CHECKING:
    from worker.domain.calls import Cleaned


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


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cleanup(*, as_json: bool) -> None:
    """Remove what is too old to matter. The fleet does so by itself once a day.

    Counts of calls older than an hour, the record of calls beyond its retention, and flood waits that are
    over. A wait that is in force is never removed.

    \b
    Example: worker db cleanup
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        cleaned = asyncio.run(_cleanup(place))
        if as_json:
            click.echo(to_json(asdict(cleaned), indent=None))
        else:
            click.echo(
                f"removed {count_of(cleaned.windows, 'count')} of calls, "
                f"{count_of(cleaned.activity, 'line')} of activity, {count_of(cleaned.blocks, 'flood wait')}"
            )


async def _cleanup(place: Opened) -> Cleaned:
    async with database(place.address) as opened_database:
        # The fleet's own next turn is a day from now.
        await take_turn(opened_database, every_seconds=0)
        days = place.settings.rate_limits.activity_log_retention_days
        return await GovernorStore(opened_database, retention_days=days).cleanup()


async def _current(address: str) -> str | None:
    await check_server(address)
    return (await read_server_facts(address)).schema
