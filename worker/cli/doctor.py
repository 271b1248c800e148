"""``worker doctor``: every setting with its origin, and whether the fleet could run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from worker.cli.doctor_accounts import check_accounts
from worker.cli.opening import Opened, database, opened, readable_errors, upgrade_embedded
from worker.cli.terminal import open_console
from worker.config.secret_key import secret_keys
from worker.errors import UserError
from worker.plain_text import to_json
from worker.status.health import Check, Verdict, check_database, check_host
from worker.store.connect import check_server

if TYPE_CHECKING:
    from worker.config.load import Loaded

_STYLES = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.FAILURE: "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(*, as_json: bool) -> None:
    """Check whether the fleet could run here, and print every setting and where it came from.

    \b
    Examples:
      worker doctor
      worker doctor --json | jq '.checks[] | select(.verdict != "ok")'
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        checks = asyncio.run(_examine(place))
        healthy = all(check.verdict is not Verdict.FAILURE for check in checks)
        if as_json:
            click.echo(_to_json(place.loaded, checks, healthy=healthy))
        else:
            _print(place.loaded, checks)
        for check in checks:
            if check.verdict is Verdict.FAILURE:
                raise UserError(f"{check.name}: {check.detail}", remedy=check.remedy)


async def _examine(place: Opened) -> list[Check]:
    settings = place.settings
    await check_server(place.address)
    checks = await check_database(place.address)
    checks += await check_host(settings.data_dir, settings.transfer.min_free_mib)
    checks.append(_check_secret_key(place))
    if all(check.verdict is not Verdict.FAILURE for check in checks):
        async with database(place.address) as opened_database:
            checks += await check_accounts(opened_database, secret_keys(settings))
    return checks


def _check_secret_key(place: Opened) -> Check:
    try:
        secret_keys(place.settings)
    except UserError as error:
        return Check("secret key", Verdict.FAILURE, error.what, error.remedy)
    return Check("secret key", Verdict.OK, "present")


def _to_json(loaded: Loaded, checks: list[Check], *, healthy: bool) -> str:
    document = {
        "healthy": healthy,
        "checks": [
            {"name": check.name, "verdict": check.verdict, "detail": check.detail, "remedy": check.remedy}
            for check in checks
        ],
        "settings": [
            {"name": name, "value": value, "origin": origin} for name, value, origin in loaded.rows()
        ],
    }
    return to_json(document)


def _print(loaded: Loaded, checks: list[Check]) -> None:
    console = open_console()
    settings = Table("setting", "value", "from", box=None, header_style="bold")
    for name, value, origin in loaded.rows():
        settings.add_row(Text(name), Text(value), Text(origin, style="" if origin == "default" else "bold"))
    console.print(settings)
    console.print()
    table = Table("check", "", "detail", box=None, header_style="bold")
    for check in checks:
        detail = check.detail + (f" — {check.remedy}" if check.remedy else "")
        table.add_row(Text(check.name), Text(check.verdict, style=_STYLES[check.verdict]), Text(detail))
    console.print(table)
