"""What ``worker channels`` has accounts do: look around, and join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from worker.cli.errand import shown
from worker.cli.opening import person
from worker.cli.processes import process_at
from worker.domain.channel_name import ChannelName, NamedBy
from worker.domain.phone import international
from worker.errors import FleetError, UserError
from worker.fleet.asking import Wish, fulfil
from worker.store.accounts import Account, ready_accounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.cli.opening import Opened


async def discover_all(place: Opened) -> list[dict[str, Any]]:
    """Every account's list of channels, read anew; how many each has."""
    wish = Wish("discover", (), dict, asked_by=person())
    done = await _by_each(place, wish, ())
    return [{"account": account_id, **result} for account_id, result in done]


async def join_with_each(place: Opened, name: ChannelName, phones: Sequence[str]) -> int:
    """Make these accounts (or all) members of the channel; its Telegram id."""
    by_name = name.by is NamedBy.USERNAME
    wish = Wish(
        "join",
        (),
        lambda: {"username": name.value} if by_name else {},
        asked_by=person(),
        secret=None if by_name else name.value,
    )
    done = await _by_each(place, wish, phones)
    return int(done[0][1]["telegram_id"])


async def _by_each(place: Opened, wish: Wish, phones: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """One account that cannot do it is told of and keeps no other from doing it."""
    done: list[tuple[int, dict[str, Any]]] = []
    failures: list[FleetError] = []
    async with process_at(place) as process:
        chosen = _chosen(await ready_accounts(process.database), phones)
        for account in chosen:
            try:
                with shown(quiet=False, of_bytes=False) as counter:
                    done.append((account.id, await fulfil(process, wish, counter, account_id=account.id)))
            except FleetError as error:
                failures.append(error)
                # What becomes of one alone is raised below.
                if len(chosen) > 1:
                    click.echo(f"account {account.id}: {error}", err=True)
    if not done:
        raise failures[0]
    return done


def _chosen(ready: list[Account], phones: Sequence[str]) -> list[Account]:
    if not ready:
        raise UserError("no account is logged in and enabled", remedy="run: worker accounts add PHONE")
    wanted = {international(phone) for phone in phones}
    chosen = [account for account in ready if not wanted or account.phone in wanted]
    if len(chosen) < len(wanted) or not chosen:
        raise UserError("an account that you named is not logged in", remedy="see: worker accounts list")
    return chosen
