"""Open password questions, one per account, answered at most once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.faults import RpcFault
from worker.sandbox.srp import Challenge

if TYPE_CHECKING:
    from worker.sandbox.ledger.rows import Account


class Challenges:
    """The newest question of each account; older ones are void."""

    def __init__(self) -> None:
        self._open: dict[int, Challenge] = {}

    def pose(self, account: Account) -> Challenge:
        challenge = Challenge.pose(account)
        self._open[account.user_id] = challenge
        return challenge

    def check(self, account: Account, answer: Any) -> None:
        """Accept a right answer; refuse everything else in the real server's words."""
        if account.verifier is None:
            return
        if not isinstance(answer, raw.types.InputCheckPasswordSRP):
            raise RpcFault(400, "PASSWORD_HASH_INVALID")
        challenge = self._open.pop(account.user_id, None)
        if challenge is None or challenge.srp_id != answer.srp_id:
            raise RpcFault(400, "SRP_ID_INVALID")
        if not challenge.is_answered_by(account, answer.A, answer.M1):
            raise RpcFault(400, "PASSWORD_HASH_INVALID")
