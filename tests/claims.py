"""Claiming in tests: a disk of any size, and the next set of an account with everything else as usual."""

import uuid
from dataclasses import dataclass

from sqlalchemy import text

from worker.domain.disk_space import Space
from worker.domain.split_plan import MIB
from worker.store import claiming, sets, workers
from worker.store.claiming import Taker, Turn
from worker.store.database import Database
from worker.store.leases import Tenure
from worker.store.sets import Claim


@dataclass
class FakeDisk:
    """A volume whose free space a test decides."""

    free: int = 10**12
    total: int = 10**12
    name: str = "volume"
    kept: int = 0

    async def space(self) -> Space:
        return Space(self.free, self.total)

    async def make_room(self) -> bool:
        """Only what was kept goes."""
        freed, self.kept = self.kept, 0
        self.free += freed
        return bool(freed)


async def claim_next(
    database: Database,
    account_id: int,
    worker_id: uuid.UUID,
    *,
    premium: bool = False,
    disk: FakeDisk | None = None,
    turn: Turn = Turn(),  # noqa: B008 - frozen
    large: int = 256 * MIB,
) -> Claim | None:
    taker = Taker(
        account_id,
        worker_id,
        is_premium=premium,
        standard_limit=1950 * MIB,
        premium_limit=3950 * MIB,
        large=large,
    )
    return await claiming.claim_next(database, taker, turn, disk or FakeDisk())


async def let_go(database: Database, account_id: int, worker_id: uuid.UUID | None = None) -> int:
    """Have this worker, or one that nobody knows yet, own the account and release what is claimed for it."""
    if worker_id is None:
        worker_id = uuid.uuid4()
        await workers.register(database, worker_id, host="h", pid=1, version="0", address=None)
    async with database.transaction("test.owner") as connection:
        query = text("""
            UPDATE accounts SET worker_id = :worker, lease_epoch = lease_epoch + 1 WHERE id = :account
            RETURNING lease_epoch
        """)
        epoch = (await connection.execute(query, {"worker": worker_id, "account": account_id})).scalar_one()
    return await sets.release_claims_of(database, Tenure(account_id, worker_id, epoch, 0.0))
