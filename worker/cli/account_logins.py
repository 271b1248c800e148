"""Several logins at once: one that fails neither stops nor delays another."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from worker.cli.opening import database
from worker.cli.proxy_answers import NO_PROXY
from worker.domain.phone import masked_phone
from worker.errors import FleetError, UserError
from worker.fleet.setup import Login, log_in, open_login
from worker.log import redact_text
from worker.store import accounts, proxies
from worker.telegram.proxy import parse_proxy

if TYPE_CHECKING:
    from worker.cli.account_answers import Answers
    from worker.cli.opening import Opened
    from worker.store.accounts import Account


async def log_in_all(
    place: Opened, phones: list[str], answers: Answers, *, proxy: str | None, again: bool = False
) -> None:
    """Log these accounts in; raises if one of them is not ready after that."""
    settings = place.settings
    # A number given twice would stand in its own way.
    phones = list(dict.fromkeys(phones))
    if proxy not in (None, NO_PROXY):
        parse_proxy(proxy)
    with place.telegram():
        async with (
            database(place.address) as opened_database,
            open_login(settings, opened_database, tries=answers.tries, tell=click.echo) as login,
        ):
            logins = (_log_in(login, phone, answers, proxy, again=again) for phone in phones)
            ended = await asyncio.gather(*logins, return_exceptions=True)
    _report(phones, ended)


async def _log_in(login: Login, phone: str, answers: Answers, proxy: str | None, *, again: bool) -> Account:
    account = await accounts.add_account(login.database, phone)
    if account.state == "disabled" and not again:
        raise UserError(
            f"account {account.id} is disabled", remedy=f"run: worker accounts enable {account.id}"
        )
    if proxy == NO_PROXY:
        await proxies.drop(login.database, account.id)
    elif proxy is not None:
        await proxies.save(login.database, login.sealer, account.id, proxy)
    if account.state == "ready" and not again:
        return account
    through = await proxies.load(login.database, login.sealer, account.id)
    named = str(account.id)
    return await log_in(
        replace(login, server=replace(login.server, proxy=through)),
        phone,
        ask_code=lambda: answers.code(named),
        ask_password=lambda: answers.password(named),
        anew=again,
    )


def _report(phones: list[str], ended: list[Account | BaseException]) -> None:
    failed: list[BaseException] = []
    for phone, end in zip(phones, ended, strict=True):
        if isinstance(end, BaseException):
            failed.append(end)
            if len(phones) > 1:
                click.echo(f"{masked_phone(phone)}: {redact_text(str(end))}", err=True)
        else:
            premium = ", Premium" if end.is_premium else ""
            click.echo(
                f"{end.display_name} ({masked_phone(phone)}) is ready{premium}; it is account {end.id}."
            )
    if not failed:
        return
    if len(phones) == 1 or not all(isinstance(error, FleetError) for error in failed):
        raise failed[0]
    raise UserError(f"{len(failed)} of {len(phones)} accounts are not logged in", remedy="see above")
