"""What all accounts of one process share."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker.archives.nursery import Nursery
from worker.clock import Clock, SystemClock
from worker.config.secret_key import secret_keys
from worker.errors import UserError
from worker.fleet.bell import Bell
from worker.fleet.governance import Governance, open_governance
from worker.fleet.lease import lease_account, silence_of, tell_the_log
from worker.fleet.operations import Desk
from worker.fleet.presence import own_memory, signed_on
from worker.flow.lanes import Lanes
from worker.log import get_logger
from worker.pipeline.deps import Silent, Watcher
from worker.pipeline.tries import Tries
from worker.recovery.lookout import Lookout
from worker.store import workers
from worker.store.pauses import PauseStore
from worker.store.sealing import Sealer
from worker.telegram.client import Server, trust_public_key
from worker.telegram.crowding import Crowding
from worker.telegram.doubts import KeyDoubts
from worker.workspace.folder import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from worker.config.settings import Settings
    from worker.fleet.lease import Lease
    from worker.store.database import Database
    from worker.store.silence import Silence

log = get_logger(__name__)


@dataclass(slots=True)
class Process:
    """One worker process: its identity, its shared parts, and how it is told to stop."""

    settings: Settings
    database: Database
    worker_id: uuid.UUID
    sealer: Sealer
    server: Server
    workspace: Workspace
    nursery: Nursery
    watcher: Watcher
    pauses: PauseStore
    governance: Governance
    clock: Clock
    # What was seen of the owners of accounts, so that nobody is waited for twice.
    silence: Silence
    # Hears in words why nothing happens for a while.
    tell: Callable[[str], None] = tell_the_log
    # Whether it takes its share of whatever accounts there are.
    shares_accounts: bool = False
    desk: Desk = field(default_factory=Desk)
    bell: Bell = field(default_factory=Bell)
    lanes: Lanes = field(default_factory=Lanes)
    # Counted in advance, and ended by trouble of this process's own.
    tries: Tries = field(default_factory=Tries)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    # What was looked at for messages that an older database does not know, before anything is published.
    lookout: Lookout = field(default_factory=Lookout)
    # What was claimed of the accounts' keys: it takes longer to be believed than a connection lives.
    doubts: KeyDoubts = field(default_factory=KeyDoubts)
    # Whether Telegram takes further connections from this host.
    crowding: Crowding = field(default_factory=Crowding)
    # Rings when something was posted, a pause is over, or the process stops.
    wake: Bell = field(default_factory=Bell)
    # Rings when another worker wants its share of the accounts, or has yielded some.
    company: Bell = field(default_factory=Bell)

    def lease(self, account_id: int) -> contextlib.AbstractAsyncContextManager[Lease | None]:
        """Own the account for the length of the block; None if another worker owns it."""
        return lease_account(
            *(self.database, self.clock, self.settings.lease, account_id, self.worker_id),
            *(self.tell, self.silence),
        )

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopping.set()
        self.wake.ring()


def open_sealer(settings: Settings) -> Sealer:
    """What opens and seals secrets, under keys that may change while it is in use."""
    return Sealer(*secret_keys(settings), reread=lambda: secret_keys(settings))


def telegram_server(settings: Settings) -> Server:
    """Which Telegram the settings mean."""
    telegram = settings.telegram
    if telegram.api_id is None or telegram.api_hash is None:
        raise UserError(
            "telegram.api_id and telegram.api_hash are not set",
            remedy="get them at my.telegram.org; set WORKER_TELEGRAM__API_ID and WORKER_TELEGRAM__API_HASH",
        )
    if telegram.public_key is not None:
        trust_public_key(telegram.public_key)
    return Server(
        api_id=telegram.api_id,
        api_hash=telegram.api_hash.get_secret_value(),
        host=telegram.host,
        port=telegram.port,
        test_servers=telegram.test_servers,
        bind_address=telegram.bind_address,
    )


@contextlib.asynccontextmanager
async def open_process(
    settings: Settings,
    database: Database,
    watcher: Watcher | None = None,
    tell: Callable[[str], None] = tell_the_log,
) -> AsyncIterator[Process]:
    """Register this process as a worker, keep its heartbeat going, and sign off at the end."""
    worker_id, clock = uuid.uuid4(), SystemClock()
    async with (
        Nursery() as nursery,
        open_governance(database, settings.rate_limits, clock) as governance,
    ):
        if settings.rate_limits.profile == "relaxed":
            log.warning("worker.relaxed_paces", remedy="never use this profile with the real Telegram")
        process = Process(
            settings=settings,
            database=database,
            worker_id=worker_id,
            sealer=open_sealer(settings),
            server=telegram_server(settings),
            workspace=Workspace(settings.data_dir / "workspace", worker_id),
            nursery=nursery,
            watcher=watcher or Silent(),
            pauses=PauseStore(database),
            governance=governance,
            clock=clock,
            silence=silence_of(database, clock, settings.lease),
            tell=tell,
        )
        async with signed_on(
            *(database, worker_id, clock),
            every=settings.lease.heartbeat_secs,
            address=settings.telegram.bind_address,
            say_alive=lambda: say_alive(process),
        ):
            try:
                yield process
            finally:
                process.desk.sign_off()
                await process.workspace.close()


async def say_alive(process: Process) -> None:
    """Tell the fleet that this process lives, and whether other workers have to share with it."""
    sharing = process.shares_accounts and not process.stopping.is_set()
    await workers.heartbeat(process.database, process.worker_id, own_memory(), shares_accounts=sharing)
