"""Sessions that a login replaces: ended at Telegram too, so that no forgotten key is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.errors import FleetError
from worker.log import get_logger
from worker.store import accounts, pending_logins
from worker.store.accounts import StoredSession
from worker.telegram.authorising import log_out
from worker.telegram.gateway import Gateway

if TYPE_CHECKING:
    from worker.fleet.lease import Lease
    from worker.fleet.setup import Login
    from worker.store.accounts import Account

log = get_logger(__name__)


async def session_before(login: Login, account: Account) -> StoredSession | None:
    """The session that this account has so far, if its key opens here."""
    try:
        return await accounts.find_session(login.database, login.sealer, account.id)
    except FleetError as error:
        # A secret key that is lost is one reason to log in again.
        log.info("account.old_session_unreadable", account=account.id, reason=str(error))
        return None


async def session_begun(login: Login, account: Account) -> StoredSession | None:
    """The session of a login that was begun: its code may have been accepted without anybody having heard."""
    try:
        pending = await pending_logins.load(login.database, login.sealer, account.id)
    except FleetError as error:
        log.info("account.old_session_unreadable", account=account.id, reason=str(error))
        return None
    return None if pending is None else StoredSession(pending.dc_id, pending.auth_key)


async def end_old_session(login: Login, account: Account, lease: Lease, old: StoredSession | None) -> None:
    """Log a session out that is replaced. The account works either way: what cannot be ended is told."""
    if old is None:
        return
    gateway = Gateway(
        login.server,
        permission=login.governance.permission(account.id, urgent=True),
        deadline=login.deadline,
        dc_id=old.dc_id,
        auth_key=old.auth_key,
        tether=lease.tether,
    )
    lease.on_lost = gateway.abort
    try:
        await gateway.connect()
        await log_out(gateway)
    except FleetError as error:
        log.info("account.old_session_not_ended", account=account.id, reason=str(error))
        login.tell(
            "The session before may have ended already; if not, end it in a Telegram app, under Devices."
        )
    finally:
        await gateway.close()
