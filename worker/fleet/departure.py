"""An account goes: logged out if that can be done, its session forgotten, what it published kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker.errors import FleetError, UserError
from worker.fleet.connection import gateway_of
from worker.log import get_logger
from worker.store import accounts, sets
from worker.store.open_intents import begun_by, count_begun
from worker.telegram.authorising import log_out

if TYPE_CHECKING:
    from worker.fleet.lease import Lease
    from worker.fleet.process import Process
    from worker.store.accounts import Account

log = get_logger(__name__)
# A worker that runs the account lets go of it between two archives.
_PATIENCE_SECONDS = 30.0


async def remove_account(process: Process, account: Account) -> bool:
    """Forget an account; says whether its session was ended at Telegram too."""
    await _refuse_if_it_has_begun_something(process, account)
    await accounts.disable(process.database, account.id)
    deadline = process.clock.monotonic() + process.settings.lease.lease_secs + _PATIENCE_SECONDS
    while True:
        async with process.lease(account.id) as lease:
            if lease is not None:
                await _refuse_if_it_has_begun_something(process, account)
                logged_out = await _log_out(process, account, lease)
                await sets.release_claims_of(process.database, lease.tenure)
                await accounts.delete(process.database, lease.tenure)
                return logged_out
        if process.clock.monotonic() > deadline:
            raise UserError(
                f"a worker is still busy with account {account.id}",
                remedy="it is disabled and will be let go; then run this again",
            )
        await asyncio.sleep(process.settings.lease.heartbeat_secs)


async def _refuse_if_it_has_begun_something(process: Process, account: Account) -> None:
    begun = await count_begun(process.database, account.id)
    if begun:
        raise UserError(
            f"account {account.id} has begun {begun} uploads that are not finished",
            remedy=f"have it finish them: worker recover; or leave them to other accounts:"
            f" worker accounts disable {account.id}; or end what nobody can finish: worker recover --give-up"
            f" {await _first_set(process, account)}",
        )


async def _first_set(process: Process, account: Account) -> str:
    begun = await begun_by(process.database, account.id, at_once=True, claimed=True)
    return str(begun[0].set_id) if begun else "SET"


async def _log_out(process: Process, account: Account, lease: Lease) -> bool:
    try:
        session = await accounts.find_session(process.database, process.sealer, account.id)
        if session is None:
            return True
        gateway = await gateway_of(process, account, lease, session)
        try:
            await gateway.connect()
            await log_out(gateway)
        finally:
            await gateway.close()
    except FleetError as error:
        log.warning("account.not_logged_out", account=account.id, reason=str(error))
        return False
    return True
