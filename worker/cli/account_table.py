"""Accounts as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.domain.phone import masked_phone
from worker.errors import UserError
from worker.store import accounts, proxies
from worker.store.channels import count_channels_of
from worker.store.open_intents import count_begun
from worker.store.roster import roster_accounts, roster_workers
from worker.store.sealing import Sealer
from worker.telegram.proxy import shown

if TYPE_CHECKING:
    from worker.store.database import Database
    from worker.store.roster import RosterAccount


def row(account: RosterAccount) -> dict[str, object]:
    """For ``--json``."""
    return {
        "id": account.id,
        "phone": masked_phone(account.phone),
        "name": account.display_name,
        "username": account.username,
        "premium": account.is_premium,
        "state": account.state,
        "reason": account.state_reason,
    }


def table(found: list[RosterAccount]) -> str:
    """One line each: number, phone, state, name."""
    return "\n".join(_line(account) for account in found)


def _line(account: RosterAccount) -> str:
    name = account.display_name + (f" @{account.username}" if account.username else "")
    notes = [name, *(["Premium"] if account.is_premium else [])]
    if account.state in ("awaiting_code", "awaiting_password", "needs_login"):
        notes.append(f"go on with: worker accounts login {account.id}")
    if account.state == "frozen":
        notes.append(f"once Telegram has lifted it: worker accounts enable {account.id}")
    state = account.state.replace("_", " ")
    return f"{account.id:>3}  {masked_phone(account.phone)}  {state:<17}  {'  '.join(notes)}".rstrip()


async def _proxy(database: Database, keys: list[bytes], account_id: int) -> str | None:
    """The account's proxy without its password; a key that is not here hides this and nothing else."""
    try:
        proxy = await proxies.load(database, Sealer(*keys), account_id)
    except UserError as error:
        return f"unknown: {error.what}"
    return shown(proxy) if proxy else None


async def details(database: Database, keys: list[bytes], named: str) -> dict[str, object]:
    """Everything there is to say about one account."""
    found = await accounts.find_account(database, named)
    account = next(one for one in await roster_accounts(database) if one.id == found.id)
    runner = next((one for one in await roster_workers(database) if one.id == account.worker_id), None)
    proxy = await _proxy(database, keys, account.id)
    return {
        **row(account),
        "telegram_id": found.telegram_user_id,
        "runs_on": f"{runner.host}, process {runner.pid}" if runner else None,
        "proxy": proxy,
        "channels": await count_channels_of(database, account.id),
        "begun_uploads": await count_begun(database, account.id),
    }
