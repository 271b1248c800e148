"""``worker accounts``: who works."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import click

from worker.cli.account_answers import Answers, asked_number, file_option, phone_number
from worker.cli.account_logins import log_in_all
from worker.cli.account_table import details, row, table
from worker.cli.opening import Opened, as_called, database, opened, readable_errors, upgrade_embedded
from worker.cli.processes import process_at
from worker.cli.proxy_answers import proxy_address, proxy_options
from worker.config.secret_key import secret_keys
from worker.errors import UserError
from worker.fleet.departure import remove_account
from worker.fleet.key_rotation import rotate_key
from worker.plain_text import to_json
from worker.store import accounts as store
from worker.store import roster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from worker.store.accounts import Account
    from worker.store.database import Database

T = TypeVar("T")


@click.group()
def accounts() -> None:
    """Log accounts in and see how they stand."""


_code_file = file_option("--code-file", "Read the login code from this file instead of asking.")
_password_file = file_option("--password-file", "Read the account's password from this file.")


@accounts.command()
@click.argument("phones", nargs=-1, metavar="[PHONE…]")
@_code_file
@_password_file
@proxy_options("Reach Telegram through it: socks5://[user@]host:port or http://…")
def add(
    *,
    phones: tuple[str, ...],
    code_file: Path | None,
    password_file: Path | None,
    proxy: str | None,
    proxy_file: Path | None,
) -> None:
    """Log accounts in for the first time. Nothing is kept but their sessions, encrypted.

    Without PHONE it asks for one.

    With --code-file, run it twice: the first time Telegram sends the code; write it into the file, and the
    second time the login goes on with it.

    \b
    Examples:
      worker accounts add
      worker accounts add +49301234567
      worker accounts add +49301234567 --proxy socks5://user@proxy.example:1080
      worker accounts add +49301234567 --proxy-file proxy.txt
      worker accounts add +49301234567 --code-file code.txt --password-file password.txt
    """
    with readable_errors(), opened() as place:
        numbers = [phone_number(phone) for phone in phones] or [asked_number("add")]
        through = proxy_address(proxy, proxy_file)
        upgrade_embedded(place)
        asyncio.run(log_in_all(place, numbers, Answers(code_file, password_file), proxy=through))


@accounts.command()
@click.argument("named", nargs=-1, metavar="[ACCOUNT…]")
@_code_file
@_password_file
@proxy_options("Reach Telegram through it from here on; 'none' for no proxy.")
@click.option("--again", is_flag=True, help="Begin anew: another code, another session, even if it has one.")
def login(
    *,
    named: tuple[str, ...],
    code_file: Path | None,
    password_file: Path | None,
    proxy: str | None,
    proxy_file: Path | None,
    again: bool,
) -> None:
    """Log accounts in again, or go on with a login that was interrupted.

    ACCOUNT is a phone number, a @username, a name, or the number that `worker accounts list` shows.
    Without ACCOUNT it asks for the phone number.

    \b
    Examples:
      worker accounts login 3
      worker accounts login +49301234567 --code-file code.txt
      worker accounts login 3 --again
    """
    with readable_errors(), opened() as place:
        through = proxy_address(proxy, proxy_file)
        upgrade_embedded(place)
        names = named or (asked_number("login"),)
        found = asyncio.run(_on_database(place, lambda db: _find_all(db, names)))
        numbers = [account.phone for account in found]
        asyncio.run(log_in_all(place, numbers, Answers(code_file, password_file), proxy=through, again=again))


@accounts.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_accounts(*, as_json: bool) -> None:
    """List all accounts.

    \b
    Example: worker accounts list
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        found = asyncio.run(_on_database(place, roster.roster_accounts))
        if as_json:
            click.echo(to_json([row(account) for account in found]))
        elif found:
            click.echo(table(found))
        else:
            click.echo(as_called("no account yet; add one with: worker accounts add PHONE"))


@accounts.command()
@click.argument("named", metavar="ACCOUNT")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(*, named: str, as_json: bool) -> None:
    """Show one account: who it is, how it stands, who runs it, what it has begun.

    \b
    Example: worker accounts show 3
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        keys = secret_keys(place.settings)
        shown = asyncio.run(_on_database(place, lambda db: details(db, keys, named)))
        if as_json:
            click.echo(to_json(shown))
            return
        for name, value in shown.items():
            click.echo(f"{name.replace('_', ' '):<15} {'-' if value in (None, '') else value}")


@accounts.command()
@click.argument("named", metavar="ACCOUNT")
def disable(*, named: str) -> None:
    """Let an account rest until it is enabled. What it is sending is finished first.

    \b
    Example: worker accounts disable @ada
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        account = asyncio.run(_on_database(place, lambda db: _change(db, named, store.disable)))
        click.echo(f"Account {account.id} rests; a worker that runs it lets go of it between two archives.")


@accounts.command()
@click.argument("named", metavar="ACCOUNT")
def enable(*, named: str) -> None:
    """Let a disabled account work again.

    \b
    Example: worker accounts enable @ada
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        account = asyncio.run(_on_database(place, lambda db: _change(db, named, store.enable)))
        if account.state == "banned":
            raise UserError(
                f"Telegram has banned account {account.id}",
                remedy=f"if it is free again: worker accounts login {account.id};"
                f" else: worker accounts remove {account.id}",
            )
        if account.state != "ready":
            click.echo(f"Account {account.id} is enabled; log it in with: worker accounts login {account.id}")
        else:
            click.echo(f"Account {account.id} works again; running workers take it up by themselves.")


@accounts.command()
@click.argument("named", metavar="ACCOUNT")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(*, named: str, yes: bool) -> None:
    """Log an account out and forget it. What it has published stays.

    \b
    Example: worker accounts remove @ada
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        account = asyncio.run(_on_database(place, lambda db: store.find_account(db, named)))
        if not yes:
            who = account.display_name or f"account {account.id}"
            click.confirm(f"Log {who} out and forget its session?", abort=True)
        logged_out = asyncio.run(_remove(place, account))
        click.echo(f"Account {account.id} is gone; what it has published stays.")
        if not logged_out:
            click.echo("It could not be logged out: end its session in a Telegram app, under Devices.")


@accounts.command("rotate-key")
def rotate() -> None:
    """Encrypt every session anew, under a fresh key. The fleet goes on meanwhile.

    With a key of your own (WORKER_SECRET_KEY_FILE), put a fresh one above the old one in that file on
    every host first: the first line encrypts, every line opens. Running workers read the file again.

    \b
    Example: worker accounts rotate-key
    """
    with readable_errors(), opened() as place:
        upgrade_embedded(place)
        rotated = asyncio.run(_on_database(place, lambda db: rotate_key(db, place.settings)))
        click.echo(f"{rotated.rows} secrets are encrypted under key {rotated.key_id}.")
        if rotated.left_over:
            click.echo("The other keys open nothing any more: remove their lines on every host. Put these")
            click.echo("there instead: by them what was published is known as yours if the database is lost.")
            for line in rotated.left_over:
                click.echo(f"  {line}")


async def _find_all(opened_database: Database, named: tuple[str, ...]) -> list[Account]:
    return [await store.find_account(opened_database, name) for name in named]


async def _change(
    opened_database: Database, named: str, change: Callable[[Database, int], Awaitable[None]]
) -> Account:
    account = await store.find_account(opened_database, named)
    await change(opened_database, account.id)
    return await store.get_account(opened_database, account.id)


async def _remove(place: Opened, account: Account) -> bool:
    async with process_at(place) as process:
        return await remove_account(process, account)


async def _on_database(place: Opened, work: Callable[[Database], Awaitable[T]]) -> T:
    async with database(place.address) as opened_database:
        return await work(opened_database)
