"""What every step is given: the account's connections, its locks, and the places it may touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from worker.domain.split_plan import MIB

if TYPE_CHECKING:
    from collections.abc import Container
    from uuid import UUID

    from worker.archives.nursery import Nursery
    from worker.clock import Clock
    from worker.config.settings import Settings
    from worker.flow.lanes import Lanes
    from worker.flow.outbox import Outbox
    from worker.pipeline.posting import Posting, PostingTransport
    from worker.pipeline.tries import Tries
    from worker.store.account_locks import AccountLocks
    from worker.store.accounts import Account
    from worker.store.database import Database
    from worker.store.leases import Tenure
    from worker.store.silence import Silence
    from worker.telegram.gateway import Gateway
    from worker.workspace.folder import Workspace


class Trust(Protocol):
    """The account's lease, as far as the steps care."""

    @property
    def tenure(self) -> Tenure:
        """The turn with the account that this process has: what stands in the row of its owner."""
        ...

    @property
    def is_trusted(self) -> bool:
        """Whether this process certainly still owns the account."""
        ...

    def require(self) -> None:
        """Raise unless something visible may be written at this moment."""
        ...

    async def confirmed(self) -> None:
        """Wait until something visible may be written; ``LeaseLostError`` once that will not be so again."""
        ...


class Watcher(Protocol):
    """Whoever wants to know what is going on."""

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        """So many bytes of a set went through this step."""
        ...

    def set_ended(self, set_name: str, outcome: str) -> None:
        """A set left the pipeline this way."""
        ...

    def set_given_up(self, set_name: str, reason: str) -> None:
        """A set will not be tried again unless a person asks for it."""
        ...


class Silent:
    """Nobody watches."""

    def bytes_moved(self, set_name: str, step: str, done: int, total: int) -> None:
        """Not shown."""

    def set_ended(self, set_name: str, outcome: str) -> None:
        """Not shown."""

    def set_given_up(self, set_name: str, reason: str) -> None:
        """Not shown."""


@dataclass(slots=True)
class Standing:
    """What Telegram grants an account for the time being. It may change while the account is connected."""

    is_premium: bool


@dataclass(frozen=True, slots=True)
class Deps:
    """One account's work in one process."""

    settings: Settings
    database: Database
    account: Account
    standing: Standing
    worker_id: UUID
    # None for a look, which is no run.
    run_id: int | None
    gateway: Gateway
    locks: AccountLocks
    silence: Silence
    trust: Trust
    lanes: Lanes
    tries: Tries
    workspace: Workspace
    nursery: Nursery
    clock: Clock
    # The destinations in which this process knows of everything of ours: it publishes in no other.
    looked_through: Container[int]
    watcher: Watcher
    outbox: Outbox[Posting]
    transport: PostingTransport

    @property
    def upload_limit(self) -> int:
        """The largest part this account may send."""
        transfer = self.settings.transfer
        return MIB * (transfer.premium_limit_mib if self.standing.is_premium else transfer.standard_limit_mib)
