"""How long the owners of accounts have been silent, by this process's own clock.

No time that another clock wrote is compared with one of ours: a mark that has not changed since it was first
seen here has stood still for at least as long as that is ago, whatever the server takes the time to be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from worker.store.leases import look, owners

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from worker.clock import Clock
    from worker.store.database import Database
    from worker.store.leases import Mark, Seen


class Silence:
    """What one process has seen of the accounts' owners.

    ``patience`` is how long an owner may be silent and still be connected, where its row does not say so.
    """

    def __init__(self, database: Database, clock: Clock, *, patience: float, look_every: float) -> None:
        self._database = database
        self._clock = clock
        self._patience = patience
        self._look_every = look_every
        self._first: dict[int, tuple[Mark, float]] = {}

    async def listen(self) -> None:
        """Look at every owner, so that whoever has to wait for one later has waited from here on."""
        for account_id, mark in (await owners(self._database)).items():
            self._still(account_id, mark)

    async def outwait(
        self, account_id: int, me: UUID, tell: Callable[[float], None] = lambda _: None
    ) -> Seen | None:
        """Wait until the account's owner is certainly gone, holding nothing; None as soon as one is alive.

        ``tell`` hears once how many seconds that takes at most.
        """
        told, before = False, None
        while (seen := await look(self._database, account_id, patience=self._patience)) is not None:
            left = self._left(seen)
            is_free = seen.mark.worker_id in (None, me)
            if left <= 0 or (is_free and not seen.locked):
                return seen
            if seen.locked and (is_free or seen.plausible):
                return None
            if before is not None and seen.has_moved_since(before):
                # Somebody is alive there, even if not the owner but whoever takes over from it.
                return None
            before = seen
            if not told:
                tell(math.ceil(left))
                told = True
            await self._clock.sleep(min(left, self._look_every))
        return None

    async def has_not_moved(self, seen: Seen) -> bool:
        """Whether the account's mark is still the same."""
        again = await look(self._database, seen.account_id, patience=self._patience)
        return again is not None and again.mark == seen.mark

    def _left(self, seen: Seen) -> float:
        """Until every owner whose lock is in the way has been silent for long enough."""
        return max(
            (seen.patience[number] or self._patience) - self._still(number, mark)
            for number, mark in seen.marks.items()
        )

    def _still(self, account_id: int, mark: Mark) -> float:
        now = self._clock.monotonic()
        first = self._first.get(account_id)
        if first is None or first[0] != mark:
            first = self._first[account_id] = (mark, now)
        return now - first[1]
