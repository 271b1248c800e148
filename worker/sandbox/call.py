"""One call in progress: who makes it, over what, and the ways to say no that every handler shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.sandbox.faults import RpcFault

if TYPE_CHECKING:
    from worker.sandbox.connection import Connection
    from worker.sandbox.ledger import Ledger
    from worker.sandbox.ledger.rows import Account, Key
    from worker.sandbox.server import Sandbox
    from worker.sandbox.session import Session


@dataclass(frozen=True, slots=True)
class Call:
    """Handed to every handler."""

    sandbox: Sandbox
    connection: Connection
    session: Session
    key: Key
    account: Account | None

    @property
    def ledger(self) -> Ledger:
        return self.sandbox.ledger

    @property
    def me(self) -> Account:
        """The account the key speaks for; handlers that need one are only called with one."""
        assert self.account is not None
        return self.account

    def check_authorised(self) -> None:
        if self.account is None:
            waiting = self.key.pending_user_id is not None
            raise RpcFault(401, "SESSION_PASSWORD_NEEDED" if waiting else "AUTH_KEY_UNREGISTERED")
        if self.account.banned:
            raise RpcFault(401, "USER_DEACTIVATED_BAN")

    def encode(self, result: Any) -> bytes:
        """Return an answer in the words of the client's layer."""
        return self.sandbox.encode(result, self.session.layer)
