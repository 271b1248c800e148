"""What ``worker doctor`` says about accounts: whether they can work, and whether their sessions open here."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from worker.status.health import Check, Verdict
from worker.store.account_secrets import sealed_under
from worker.store.roster import roster_accounts
from worker.store.sealing import key_id

if TYPE_CHECKING:
    from worker.store.database import Database

_WAITING = ("new", "awaiting_code", "awaiting_password", "needs_login")
_REFUSED = ("banned", "frozen")


async def check_accounts(database: Database, keys: list[bytes]) -> list[Check]:
    """Those that wait for a person, and secrets that no key here opens."""
    found = await roster_accounts(database)
    states = Counter(account.state for account in found)
    spoken = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in sorted(states.items()))
    waiting = [str(account.id) for account in found if account.state in _WAITING]
    lost = [str(account.id) for account in found if account.state in _REFUSED]
    verdict = Verdict.WARNING if waiting or lost else Verdict.OK
    remedies = [f"run: worker accounts login {' '.join(waiting)}"] if waiting else []
    remedies += [f"see why: worker accounts show {account_id}" for account_id in lost]
    remedy = "; ".join(remedies)
    checks = [Check("accounts", verdict, spoken or "none yet", remedy)]
    known = {key_id(key) for key in keys}
    closed = sum(count for sealed, count in (await sealed_under(database)).items() if sealed not in known)
    if closed:
        what = f"{closed} were encrypted under a key that is not here"
        checks.append(
            Check("sessions", Verdict.FAILURE, what, "add that key as another line of the key file")
        )
    return checks
