"""``worker accounts``: who works."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from worker.cli.opening import Opened, database, opened, readable_errors, upgrade_embedded
from worker.clock import SystemClock
from worker.config.secret_key import secret_key
from worker.domain.phone import international, masked_phone
from worker.errors import UserError
from worker.fleet.governance import open_governance
from worker.fleet.process import telegram_server
from worker.fleet.setup import Login, log_in
from worker.store.accounts import Account, all_accounts
from worker.store.sealing import Sealer

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def accounts() -> None:
    """Log accounts in and see how they stand."""


@accounts.command()
@click.argument("phone")
@click.option("--code-file", type=_FILE, help="Read the login code from this file instead of asking.")
@click.option("--password-file", type=_FILE, help="Read the account's password from this file.")
def add(*, phone: str, code_file: Path | None, password_file: Path | None) -> None:
    """Log an account in, or in again. Nothing is kept but the session, encrypted.

    \b
    Example: worker accounts add +49301234567
    """
    with readable_errors(), opened() as place:
        number = international(phone)
        if number is None:
            raise UserError("that is no phone number", remedy="write it with its country code, like +49…")
        upgrade_embedded(place)
        account = asyncio.run(_add(place, number, code_file, password_file))
        premium = ", Premium" if account.is_premium else ""
        click.echo(f"{account.display_name} ({masked_phone(account.phone)}) is ready{premium}.")


@accounts.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_accounts(*, as_json: bool) -> None:
    """List all accounts.

    \b
    Example: worker accounts list
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_list(place))
        if as_json:
            click.echo(json.dumps([_row(account) for account in found], indent=2))
            return
        for account in found:
            premium = "  Premium" if account.is_premium else ""
            who = f"{masked_phone(account.phone)}  {account.state:<11}  {account.display_name}"
            click.echo(f"{account.id:>3}  {who}{premium}")
        if not found:
            click.echo("no account yet; add one with: worker accounts add PHONE")


def _row(account: Account) -> dict[str, object]:
    return {
        "id": account.id,
        "phone": masked_phone(account.phone),
        "name": account.display_name,
        "premium": account.is_premium,
        "state": account.state,
    }


async def _list(place: Opened) -> list[Account]:
    async with database(place.address) as opened_database:
        return await all_accounts(opened_database)


async def _add(place: Opened, phone: str, code_file: Path | None, password_file: Path | None) -> Account:
    settings = place.settings

    async def ask_code() -> str:
        return await asyncio.to_thread(_answer, "Code that Telegram has sent", code_file, hidden=False)

    async def ask_password() -> str:
        return await asyncio.to_thread(_answer, "Password of the account", password_file, hidden=True)

    server, sealer = telegram_server(settings), Sealer(secret_key(settings))
    async with (
        database(place.address) as opened_database,
        open_governance(opened_database, settings.rate_limits, SystemClock()) as governance,
    ):
        login = Login(opened_database, sealer, server, governance, settings.telegram.call_timeout_secs)
        return await log_in(login, phone, ask_code=ask_code, ask_password=ask_password)


def _answer(question: str, file: Path | None, *, hidden: bool) -> str:
    if file is not None:
        return file.read_text(encoding="utf-8").strip()
    answer: str = click.prompt(question, hide_input=hidden)
    return answer
