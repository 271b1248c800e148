"""Claims whose commit got no answer: made or not, nobody works on them, so they are given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from worker.errors import CommitUnknownError

if TYPE_CHECKING:
    from worker.store.database import Database
    from worker.store.sets import Claim


class UnheardClaimError(CommitUnknownError):
    """Give back: this claim may have been made, and its worker does not work on it."""

    def __init__(self, what: str, claim: Claim) -> None:
        super().__init__(what)
        self.claim = claim


async def give_back_unheard(database: Database, claim: Claim) -> None:
    """Let anybody claim its set, if the claim was made. Harmless however late and often it is done."""
    async with database.transaction("sets.give_back_unheard") as connection:
        await connection.execute(
            text("""
                UPDATE archive_sets SET state = 'ready', claimed_by = NULL, claim_worker_id = NULL,
                    claimed_at = NULL, updated_at = fleet_now()
                WHERE id = :set AND fence = :fence AND state = 'claimed'
            """),
            {"set": claim.set_id, "fence": claim.fence},
        )
